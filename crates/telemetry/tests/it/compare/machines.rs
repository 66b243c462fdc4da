//! The captured machines with a card of amdgpu's, and a synthetic server, as each of the programs can read them.

use std::fs;
use std::path::Path;

use layout::{Kfd, KfdNode, Machine, Nodes};
use support::captures;

/// The captured machines by archive. Where no KFD was captured, a **synthetic** one names the card: AMD's
/// tools list no GPU without KFD.
pub(crate) fn all() -> [(&'static str, Machine); 7] {
    [
        ("phoenix", captures::phoenix()),
        ("vangogh", captures::vangogh()),
        ("rx7800xt", captures::rx7800xt().kfd(kfd("0000:03:00.0", 0x747e, 110_001))),
        ("rx6900xt", captures::rx6900xt().kfd(kfd("0000:0c:00.0", 0x73bf, 100_300))),
        ("rx9070", captures::rx9070().kfd(kfd("0000:03:00.0", 0x7550, 120_001))),
        ("vega-drm-card0", captures::vega().kfd(kfd("0000:09:00.0", 0x687f, 90_000))),
        ("two synthetic Instincts", Machine::instinct_with_readings(2, 8)),
    ]
}

fn kfd(address: &str, device: u16, gfx_target_version: u64) -> Kfd {
    let gpu = KfdNode::gpu(35218, device, gfx_target_version).at(address).render(128);
    Kfd::new(237).node(KfdNode::cpu(16)).node(gpu)
}

/// The size to which tar pads a file of sysfs.
const PADDED: usize = 4096;

/// Lays it out without the NULs that pad the texts of a capture: node_exporter and rocm-smi crash on them.
pub(crate) fn lay_out(machine: &Machine, nodes: Nodes) -> tempfile::TempDir {
    let root = support::detect::scratch();
    machine.lay_out(root.path(), nodes).unwrap();
    without_padding(&root.path().join("sys/devices"));
    root
}

fn without_padding(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            without_padding(&path);
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap();
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let text = &bytes[..end];
            if bytes.len() == PADDED && text.ends_with(b"\n") && !text.contains(&0) {
                fs::write(&path, text).unwrap();
            }
        }
    }
}
