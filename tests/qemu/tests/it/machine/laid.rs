//! The files that `doctor --canary` needs beside the real drivers: a /sys in which the machine's card is
//! bound.

use layout::{Entry, Gpu, Kfd, KfdNode, Machine, Module};
use qemu_machine::archive::Archive;

/// A Navi 31, as guest/card.sh calls QEMU's card.
pub(crate) const DEVICE: u16 = 0x7448;
pub(crate) const ADDRESS: &str = "0000:00:05.0";

/// The tree beneath `laid/sys`, and the script that puts it in place. KFD's major there is the guest's to write.
pub(crate) fn into(archive: &mut Archive) {
    let machine =
        Machine::new().module(Module::new("amdgpu")).gpu(Gpu::amd(ADDRESS, DEVICE).card(0).render(128)).kfd(
            Kfd::new(241)
                .node(KfdNode::cpu(1))
                .node(KfdNode::gpu(1, DEVICE, 110_000).at(ADDRESS).render(128)),
        );
    sys_into(archive, &machine);
    archive.file("canary.sh", 0o755, include_bytes!("../../../guest/canary.sh"));
}

/// The machine's /sys, beneath `laid/sys`.
pub(crate) fn sys_into(archive: &mut Archive, machine: &Machine) {
    for (path, entry) in machine.tree().unwrap().iter().filter(|(path, _)| path.starts_with("sys/")) {
        let path = format!("laid/{path}");
        match entry {
            Entry::Directory => archive.folder(&path),
            Entry::File(bytes) => archive.file(&path, 0o644, bytes),
            Entry::Link(target) => archive.link(&path, target),
            Entry::Device(_) => panic!("{path} is a device in /sys"),
        }
    }
}
