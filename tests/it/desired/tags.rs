//! The tags of a worker, on captured machines, through the program.

use std::fs;

use assert_cmd::Command;
use layout::{Machine, Nodes, XcpNames};
use support::captures;

fn tags(machine: &Machine, nodes: Nodes, config: &str, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let root = support::detect::scratch();
    machine.lay_out(root.path(), nodes).unwrap();
    let folder = root.path().join("etc/rocworker");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.yaml"), config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    command.arg("--root").arg(root.path()).arg("tags").args(arguments).assert()
}

/// Nothing at all where there are none.
fn line_of(tags: &str) -> String {
    if tags.is_empty() { String::new() } else { format!("{tags}\n") }
}

#[test]
fn tags_say_what_a_container_can_be_given_and_the_workers_own_come_first() {
    // phoenix/kfd/topology/nodes/1/properties: gfx_target_version 110003; one GPU beside an NVIDIA card.
    let phoenix = captures::phoenix_beside_rtx4080;
    // mi300x-cpx-kfd: 63 GPU nodes of gfx_target_version 90402.
    let mi300x = || captures::mi300x(XcpNames::Dot);
    let ours = "gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count";
    for (machine, config, expected) in [
        (phoenix(), "", format!("{ours}=1,gfx1103")),
        (
            phoenix(),
            "tag: linux, gpu,linux",
            "linux,gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=1,gfx1103".into(),
        ),
        (phoenix(), "gpu-device-ids: 0", format!("{ours}=1,gpu-devices=0,gfx1103")),
        (
            phoenix(),
            "gpu-device-ids: [renderD128, '0000:64:00.0']",
            format!("{ours}=1,gpu-devices=0,gfx1103"),
        ),
        (phoenix(), "compute-runtime: cuda\ntag: a", "a".into()),
        (phoenix(), "compute-runtime: none", String::new()),
        (phoenix(), "enable-gpu: false\ntag: [a, b]", "a,b".into()),
        (mi300x(), "", format!("{ours}=63,gfx942")),
        (mi300x(), "gpu-device-ids: '62,8'", format!("{ours}=2,gpu-devices=8,62,gfx942")),
        // A card by its address or by the unique id that its partitions share: at node 10 2472748907779728154, 0x2250f807caf2231a.
        (
            mi300x(),
            "gpu-device-ids: '0000:27:00.0'",
            format!("{ours}=8,gpu-devices=8,9,10,11,12,13,14,15,gfx942"),
        ),
        (
            mi300x(),
            "gpu-device-ids: GPU-2250f807caf2231a",
            format!("{ours}=8,gpu-devices=8,9,10,11,12,13,14,15,gfx942"),
        ),
        (captures::a380(), "tag: intel", "intel".into()),
    ] {
        tags(&machine, Nodes::Recorded, config, &[]).success().stdout(line_of(&expected));
        // An empty value would be the empty tag.
        let line = if expected.is_empty() { expected } else { format!("CONCOURSE_TAG={expected}\n") };
        tags(&machine, Nodes::Recorded, config, &["--env"]).success().stdout(line);
    }
}

#[test]
fn a_gpu_that_no_container_could_open_gives_no_tag() {
    tags(&captures::phoenix(), Nodes::None, "tag: a", &[]).success().stdout("a\n");
    let listed = tags(&captures::phoenix(), Nodes::None, "gpu-device-ids: 0", &[]).success().stdout("");
    let warning = String::from_utf8_lossy(&listed.get_output().stderr).into_owned();
    assert!(
        warning.contains("GPU 0 is configured and left out: ") && warning.contains("renderD128"),
        "{warning}"
    );
}

#[test]
fn a_gpu_that_is_not_there_or_not_amds_is_an_error_with_its_line_and_no_other_card_is_taken() {
    for (word, part) in [
        ("1", "names \"1\", and this machine's AMD GPUs are 0 (0000:64:00.0)"),
        ("renderD129", "names \"renderD129\""),
        ("GPU-0000000000000000", "names \"GPU-0000000000000000\""),
        ("'0000:09:00.0'", "no AMD GPU but nvidia"),
        ("../..", "names \"../..\""),
        ("64", "names \"64\""),
    ] {
        let config = format!("tag: a\ngpu-device-ids:\n- '0000:64:00.0'\n- {word}\n");
        let failed =
            tags(&captures::phoenix_beside_rtx4080(), Nodes::Recorded, &config, &[]).code(2).stdout("");
        let error = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
        assert!(error.contains("config.yaml:4: ") && error.contains(part), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
