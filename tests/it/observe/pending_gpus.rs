//! Which GPUs the start waits for: those whose driver may not be done, and no others.

use std::path::Path;

use config::Config;
use host::facts::Facts;
use layout::{Device, Entry, Gpu, Kfd, KfdNode, Machine, Module, Nodes};
use rocworker::pending_gpus::pending_gpus;
use root::Root;

const FIRST: &str = "0000:03:00.0";
const SECOND: &str = "0000:83:00.0";

fn card(address: &str, card: u32, render: u32) -> Gpu {
    Gpu::amd(address, 0x7448).card(card).render(render)
}

fn node(address: &str, render: u32) -> KfdNode {
    KfdNode::gpu(7000 + render, 0x7448, 110_000).at(address).render(render)
}

/// Two cards whose driver is done; udevd does not run.
fn good() -> Machine {
    with(card(FIRST, 0, 128)).kfd(kfd().node(node(FIRST, 128)).node(node(SECOND, 129)))
}

fn with(first: Gpu) -> Machine {
    Machine::new().module(Module::new("amdgpu")).gpu(first).gpu(card(SECOND, 1, 129))
}

fn kfd() -> Kfd {
    Kfd::new(511).node(KfdNode::cpu(16))
}

/// Each as `GPU 0 (0000:03:00.0): why`.
fn waits_for(machine: &Machine, config: &str) -> Vec<String> {
    let folder = support::detect::scratch();
    machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
    let root = Root::open(folder.path()).unwrap();
    let config = Config::parse(Path::new("config.yaml"), config).unwrap();
    let awaited = pending_gpus(&root, &config, &Facts::read(&root));
    let top = folder.path().display().to_string();
    let said = awaited.into_iter().map(|it| format!("{}: {}", it.gpu, it.problems.join("; ")));
    said.map(|it| it.replace(&top, "")).collect()
}

#[track_caller]
fn holds(machine: &Machine, config: &str, expected: &[&str]) {
    let found = waits_for(machine, config);
    let is_so =
        found.len() == expected.len() && found.iter().zip(expected).all(|(it, start)| it.starts_with(start));
    assert!(is_so, "{config}: {found:#?}");
}

#[test]
fn a_driver_that_is_not_done_is_waited_for() {
    let no_render = "GPU 0 (0000:03:00.0): /dev/dri/renderD128 is not there";
    holds(&good(), "", &[]);
    holds(&good().remove("/dev/dri/renderD128"), "", &[no_render]);
    let unbound = with(card(FIRST, 0, 128).unbound()).kfd(kfd().node(node(SECOND, 129)));
    holds(&unbound, "", &["GPU 1 (0000:03:00.0): no driver is bound to it"]);
    let without_kfd =
        ["GPU 0 (0000:03:00.0): /dev/kfd cannot be used", "GPU 1 (0000:83:00.0): /dev/kfd cannot be used"];
    holds(&good().remove("/dev/kfd"), "", &without_kfd);
    // Another number: what stands there is of the last driver's run.
    let stale = good().put("/dev/dri/renderD128", Device::new(226, 140, 0));
    holds(&stale, "", &["GPU 0 (0000:03:00.0): /dev/dri/renderD128 is device 226:140"]);
}

#[test]
fn what_stays_as_it_is_is_not_waited_for() {
    // Firmware or KFD do not support it.
    holds(&with(card(FIRST, 0, 128)).kfd(kfd().node(node(SECOND, 129))), "", &[]);
    let given_away =
        with(card(FIRST, 0, 128).unbound().driver("vfio-pci")).kfd(kfd().node(node(SECOND, 129)));
    holds(&given_away, "", &[]);
    // A container has what it was started with.
    holds(&good().remove("/dev/dri/renderD128").put("/dev/lxd", Entry::Directory), "", &[]);
    let other =
        Machine::new().gpu(Gpu::nvidia("0000:01:00.0", 0x2704).card(0).render(128)).remove("/dev/dri");
    holds(&other, "", &[]);
}

#[test]
fn only_what_the_configuration_means_is_waited_for() {
    let late = good().remove("/dev/dri/renderD128");
    holds(&late, "gpu-device-ids: 0000:83:00.0", &[]);
    holds(&late, "gpu-device-ids: 0000:03:00.0", &["GPU 0 (0000:03:00.0): "]);
    holds(&late, "compute-runtime: cuda", &[]);
    // A uuid is not known before the driver is there.
    let unbound = with(card(FIRST, 0, 128).unbound()).kfd(kfd().node(node(SECOND, 129)));
    holds(&unbound, "gpu-device-ids: GPU-00000000000000aa", &["GPU 1 (0000:03:00.0): no driver"]);
}

#[test]
fn a_node_that_udev_has_not_gone_over_is_waited_for() {
    // KFD's major is 511 here; udev's records are called by a device's numbers.
    let udevd = good().put("/run/udev/control", "").put("/run/udev/data/c511:0", "I:1\n");
    let unset = |gpu: &str, render| format!("{gpu}: udev has not set /dev/dri/renderD{render} yet");
    let [first, second] = [unset("GPU 0 (0000:03:00.0)", 128), unset("GPU 1 (0000:83:00.0)", 129)];
    assert_eq!(waits_for(&udevd, ""), [first.as_str(), second.as_str()]);
    let half = udevd.put("/run/udev/data/c226:128", "I:2\n");
    assert_eq!(waits_for(&half, ""), [second.as_str()]);
    holds(&half.put("/run/udev/data/c226:129", "I:3\n"), "", &[]);
}
