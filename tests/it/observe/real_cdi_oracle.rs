//! The container-device-interface crate accepts the spec that rocworker writes, and makes of it what was meant. It
//! stands in tests/cdi-oracle, a workspace of its own.

use layout::{Machine, XcpNames};
use support::stage::{Stage, stdout};
use support::{captures, real};

const ROCWORKER: &str = env!("CARGO_BIN_EXE_rocworker");

#[test]
fn real_the_cdi_crate_reads_every_name_and_stats_every_node() {
    let Some(oracle) = real::require_root_and_built("ROCWORKER_CDI_ORACLE", &["unshare"]) else { return };
    let oracle = oracle.display();
    let stage = Stage::set(&captures::mi300x(XcpNames::Dot));
    let names = stdout(&stage.shell(&format!("{ROCWORKER} cdi generate >&2; {oracle} list /etc/cdi")));
    // 63 indexes, all, and 8 cards by uuid and by address.
    assert_eq!(names.lines().count(), 63 + 1 + 8 + 8, "{names}");
    let card =
        format!("{ROCWORKER} cdi generate >&2; {oracle} inject /etc/cdi amd.com/gpu=GPU-2250f807caf2231a");
    let card = stdout(&stage.shell(&card));
    assert_eq!(card.lines().filter(|line| line.contains("renderD")).count(), 8, "{card}");
    let all = stdout(
        &stage.shell(&format!("{ROCWORKER} cdi generate >&2; {oracle} inject /etc/cdi amd.com/gpu=all")),
    );
    assert_eq!(all.lines().filter(|line| line.contains("renderD")).count(), 63, "{all}");
    assert_eq!(all.lines().filter(|line| line.contains("/dev/kfd")).count(), 1, "{all}");
    assert!(!all.contains(" 0:0"), "{all}");
    // Numbers are the nodes' own: render minor 140 is node 14 of the capture, index 12.
    let one = stdout(
        &stage.shell(&format!("{ROCWORKER} cdi generate >&2; {oracle} inject /etc/cdi amd.com/gpu=12")),
    );
    assert!(one.contains("/dev/dri/renderD140 c 226:140"), "{one}");
}

#[test]
fn real_the_cdi_crate_gives_a_container_one_gpu_by_each_of_its_names() {
    let Some(oracle) = real::require_root_and_built("ROCWORKER_CDI_ORACLE", &["unshare"]) else { return };
    let oracle = oracle.display();
    let stage = Stage::set(&Machine::demo());
    for name in ["0", "GPU-5ca1ab1e00000001", "0000:03:00.0"] {
        let nodes = stdout(
            &stage
                .shell(&format!("{ROCWORKER} cdi generate >&2; {oracle} inject /etc/cdi amd.com/gpu={name}")),
        );
        let mut nodes: Vec<&str> = nodes.lines().collect();
        nodes.sort_unstable();
        assert_eq!(
            nodes,
            ["/dev/dri/card1 c 226:1", "/dev/dri/renderD129 c 226:129", "/dev/kfd c 241:0"],
            "{name}"
        );
    }
}
