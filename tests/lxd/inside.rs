//! What a container says whose host passed it too little.

use layout::{Gpu, Kfd, KfdNode, Machine, Module, Nodes};
use rocworker::config::Config;
use rocworker::doctor::{Status, examine};
use rocworker::facts::Facts;
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

#[test]
fn doctor_tells_a_gpu_that_came_without_kfd_from_one_that_did_not_come() {
    let groupless = container().remove("/dev/dri").put("/etc/group", "root:x:0:\n");
    for (machine, evidence, remedies) in [
        (container().remove("/dev/kfd"), "without /dev/kfd", &["add CONTAINER kfd unix-char"][..]),
        (
            container().remove("/dev/dri"),
            "none of them in /dev",
            &["add CONTAINER gpu0 gpu pci=0000:03:00.0"],
        ),
        (
            groupless.remove("/dev/lxd").put("/dev/incus/sock", ""),
            "none of them in /dev",
            &[
                "incus config device add CONTAINER gpu0 gpu pci=0000:03:00.0 gid=GID-OF-RENDER-IN-THE-CONTAINER ",
            ],
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
