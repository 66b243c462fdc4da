//! What a container says whose host passed it too little.

use layout::{Device, Gpu, Kfd, KfdNode, Machine, Module, Nodes};
use rocworker::config::Config;
use rocworker::doctor::{Status, examine};
use rocworker::facts::Facts;
use rocworker::lxd::inside;
use root::Root;

/// A card in a container of LXD's, everything passed as `lxd advise` says.
fn container() -> Machine {
    let card = Gpu::amd("0000:03:00.0", 0x7448).card(1).render(128);
    let node = KfdNode::gpu(40_001, 0x7448, 110_000).at("0000:03:00.0").render(128);
    Machine::new()
        .module(Module::new("amdgpu").srcversion("5AC1AB1E5AC1AB1E5AC1AB1"))
        .gpu(card)
        .kfd(Kfd::new(241).node(KfdNode::cpu(64)).node(node))
        .put("/etc/group", "root:x:0:\nvideo:x:44:\nrender:x:992:\n")
        .put("/dev/lxd/sock", "")
}

fn laid_out(machine: &Machine) -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    machine.lay_out(dir.path(), Nodes::Recorded).unwrap();
    let root = Root::open(dir.path()).unwrap();
    (dir, root)
}

fn advice(machine: &Machine, name: Option<&str>) -> Option<String> {
    let (_dir, root) = laid_out(machine);
    inside::advice(&root, &Facts::read(&root), name)
}

fn roots(minor: u32) -> Device {
    Device::new(226, minor, 0).mode(0o660)
}

#[test]
fn what_is_missing_comes_with_the_hosts_commands_and_only_that() {
    let kfd = "lxc config device add juju-1 kfd unix-char source=/dev/kfd path=/dev/kfd gid=992 mode=0660";
    let gpu = "lxc config device add juju-1 gpu0 gpu pci=0000:03:00.0 gid=992 mode=0660";
    let none = container().remove("/dev/dri");
    for (machine, expected) in [
        (none.clone().remove("/dev/kfd"), format!("amdgpu drives a GPU, and /dev has none of its nodes: on the host, {kfd} && {gpu}")),
        (none.clone(), format!("amdgpu drives a GPU, and /dev has none of its nodes: on the host, {gpu}")),
        (
            container().remove("/dev/kfd"),
            format!("a GPU was passed in without /dev/kfd, which computing goes through: on the host, {kfd}"),
        ),
        (
            container().put("/dev/dri/renderD128", roots(128)).put("/dev/kfd", Device::new(241, 0, 0).mode(0o660)),
            "the nodes were passed in for root alone, and no task can open them (kfd and gpu0 stand for what the devices \
             are called): on the host, lxc config device set juju-1 kfd gid=992 mode=0660 && lxc config device set juju-1 \
             gpu0 gid=992 mode=0660"
                .to_owned(),
        ),
    ] {
        assert_eq!(advice(&machine, Some("juju-1")).as_deref(), Some(expected.as_str()));
    }
    let incus = none.remove("/dev/lxd").put("/dev/incus/sock", "").put("/etc/group", "root:x:0:\n");
    assert_eq!(
        advice(&incus, Some("no name;")).as_deref(),
        Some(
            "amdgpu drives a GPU, and /dev has none of its nodes: on the host, incus config device add CONTAINER gpu0 gpu \
             pci=0000:03:00.0 gid=GID-OF-RENDER-IN-THE-CONTAINER mode=0660"
        )
    );
}

#[test]
fn nothing_is_said_where_all_is_here_where_the_driver_is_what_is_missing_or_where_there_is_no_lxd() {
    let undriven = Machine::new().gpu(Gpu::amd("0000:03:00.0", 0x7448).unbound()).put("/dev/lxd/sock", "");
    let others = Machine::new().gpu(Gpu::nvidia("0000:01:00.0", 0x2704)).put("/dev/lxd/sock", "");
    let bare = container().remove("/dev/lxd").remove("/dev/kfd");
    let open = container().put("/dev/dri/renderD128", Device::new(226, 128, 0).mode(0o666));
    for machine in [container(), undriven, others, bare, open] {
        assert_eq!(advice(&machine, None), None);
    }
}

#[test]
fn doctor_tells_a_gpu_that_came_without_kfd_from_one_that_did_not_come() {
    for (machine, evidence, remedies) in [
        (container().remove("/dev/kfd"), "without /dev/kfd", &["add CONTAINER kfd unix-char"][..]),
        (
            container().remove("/dev/dri"),
            "none of them in /dev",
            &["add CONTAINER gpu0 gpu pci=0000:03:00.0"],
        ),
        (
            container().remove("/dev/dri").remove("/dev/kfd"),
            "none of them in /dev",
            &["add CONTAINER kfd unix-char", "&& lxc config device add CONTAINER gpu0 gpu pci="],
        ),
    ] {
        let (_dir, root) = laid_out(&machine);
        let config = Config::read(&root).unwrap();
        let diagnosis = examine(&root, &config, &Facts::read(&root), None);
        let check =
            diagnosis.checks.iter().find(|check| check.subject.as_deref() == Some("passthrough")).unwrap();
        assert!(check.status == Status::Failed && check.evidence.contains(evidence), "{check:?}");
        let remedy = check.remedy.as_deref().unwrap();
        assert!(remedies.iter().all(|part| remedy.contains(part)), "{remedy}");
        assert_eq!(remedy.matches("unix-char").count(), usize::from(remedies[0].contains("kfd")), "{remedy}");
    }
}
