//! What a container says whose host passed it too little.

use std::time::UNIX_EPOCH;

use config::Config;
use host::facts::Facts;
use host::timestamp::Timestamp;
use layout::{Gpu, Kfd, KfdNode, Machine, Module, Nodes};
use nix::errno::Errno;
use rocworker::doctor::{Check, Status, examine};
use root::Root;
use support::fuse;

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

#[track_caller]
fn passthrough(machine: &Machine) -> Check {
    let (_dir, root) = laid_out(machine);
    passthrough_of(&root)
}

#[track_caller]
fn passthrough_of(root: &Root) -> Check {
    let config = Config::read(root).unwrap();
    let diagnosis = examine(root, &config, &Facts::read(root), None, None, Timestamp::of(UNIX_EPOCH));
    let is_it = |check: &Check| check.subject.as_deref() == Some("passthrough");
    diagnosis.checks.into_iter().find(is_it).unwrap()
}

#[test]
fn doctor_tells_a_gpu_that_came_without_kfd_from_one_that_did_not_come() {
    let groupless = container().remove("/dev/dri").put("/etc/group", "root:x:0:\n");
    for (machine, evidence, remedies) in [
        (container().remove("/dev/kfd"), "without /dev/kfd", &["add CONTAINER kfd unix-char"][..]),
        (container().remove("/dev/dri"), "none passed in", &["add CONTAINER gpu0 gpu pci=0000:03:00.0"]),
        (
            groupless.remove("/dev/lxd").put("/dev/incus/sock", ""),
            "none passed in",
            &[
                "incus config device add CONTAINER gpu0 gpu pci=0000:03:00.0 gid=GID-OF-RENDER-IN-THE-CONTAINER ",
            ],
        ),
        (
            container().remove("/dev/dri").remove("/dev/kfd"),
            "none passed in",
            &["add CONTAINER kfd unix-char", "&& lxc config device add CONTAINER gpu0 gpu pci="],
        ),
    ] {
        let check = passthrough(&machine);
        assert!(check.status == Status::Failed && check.evidence.contains(evidence), "{check:?}");
        let remedy = check.remedy.as_deref().unwrap();
        assert!(remedies.iter().all(|part| remedy.contains(part)), "{remedy}");
        assert_eq!(remedy.matches("unix-char").count(), usize::from(remedies[0].contains("kfd")), "{remedy}");
    }
}

/// What passes the demo's machine into a container: tests/layout/src/sample.rs.
fn commands(name: &str) -> Vec<String> {
    let rest = "gid=992 mode=0660";
    let add = |rest: String| format!("lxc config device add {name} {rest}");
    let node = |name: &str, path: &str| format!("{name} unix-char source={path} path={path} {rest}");
    let cards = ["gpu0 gpu pci=0000:03:00.0", "gpu1 gpu pci=0000:c1:00.0"];
    let partitions =
        (131..=137).map(|minor| node(&format!("renderD{minor}"), &format!("/dev/dri/renderD{minor}")));
    let all = std::iter::once(node("kfd", "/dev/kfd")).chain(cards.map(|it| format!("{it} {rest}")));
    all.chain(partitions).map(add).collect()
}

/// The demo's machine as LXD shows it inside: the host's sysfs, and in /dev what was passed.
fn demo(hostname: &str) -> Machine {
    Machine::demo()
        .put("/proc/sys/kernel/hostname", format!("{hostname}\n"))
        .put("/dev/lxd/sock", "")
        .remove("/dev/kfd")
        .remove("/dev/dri")
}

#[test]
fn each_card_that_is_outside_has_its_command_with_the_hostname_as_the_containers_likely_name() {
    let all = |name: &str| commands(name).join(" && ");
    let likely = |name: &str| format!("on the host, where this is likely called {name}: {}", all(name));
    for (hostname, remedy) in [
        ("juju-3f2a81-0", likely("juju-3f2a81-0")),
        ("farm-3.example.org", likely("farm-3")),
        ("localhost", format!("on the host: {}", all("CONTAINER"))),
        ("x;reboot", format!("on the host: {}", all("CONTAINER"))),
    ] {
        let check = passthrough(&demo(hostname));
        assert_eq!(check.status, Status::Failed, "{check:?}");
        assert_eq!(check.evidence, "9 GPUs of amdgpu in sysfs, none passed in");
        assert_eq!(check.remedy.as_deref(), Some(remedy.as_str()));
    }
}

/// KFD answers EPERM for a node of a GPU that the device cgroup keeps out (kfd_topology.c).
#[test]
fn real_a_partition_that_kfd_hides_has_its_command_too() {
    if !fuse::require() {
        return;
    }
    let (dir, root) = laid_out(&demo("c1"));
    let shown = passthrough_of(&root);
    assert_eq!(shown.evidence, "9 GPUs of amdgpu in sysfs, none passed in");
    let served = fuse::Served::new(dir.path());
    for node in 1..=9 {
        let properties = format!("/sys/class/kfd/kfd/topology/nodes/{node}/properties");
        served.fault(&properties, fuse::Fault::Errno(Errno::EPERM));
    }
    assert_eq!(passthrough_of(&Root::open(served.path()).unwrap()), shown);
}

#[test]
fn one_card_of_several_is_somebodys_choice_that_should_be_looked_at() {
    let one = Machine::demo().put("/proc/sys/kernel/hostname", "c1\n").put("/dev/lxd/sock", "");
    let one = (130..=137).fold(one, |machine, minor| machine.remove(&format!("/dev/dri/renderD{minor}")));
    let check = passthrough(&one);
    assert_eq!(check.status, Status::Warning, "{check:?}");
    assert_eq!(
        check.evidence,
        "9 GPUs of amdgpu in sysfs, 1 of them passed in: right, if the other 8 are not for this container"
    );
    let others: Vec<_> = commands("c1").split_off(2);
    let remedy = format!("on the host, where this is likely called c1: {}", others.join(" && "));
    assert_eq!(check.remedy, Some(remedy), "gpu0 is the one that is here");

    let docker = one.remove("/dev/lxd").put("/.dockerenv", "");
    let remedy = passthrough(&docker).remedy.unwrap();
    assert!(
        remedy.starts_with("start it with --device /dev/kfd --device /dev/dri/renderD130 --"),
        "{remedy}"
    );
    assert!(remedy.ends_with(" --device /dev/dri/renderD137"), "{remedy}");
}
