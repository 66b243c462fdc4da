//! What a container gets.

use std::fs;
use std::process::Command;
use std::time::Duration;

use inventory::partitioning::Compute;
use layout::Machine;
use support::partitioned::{Driver, Partitioned};
use support::waiting::eventually;

use crate::kubelet::{Asker, Kubelet, ids};
use crate::lists::laid;
use crate::running::Running;

const GPU: &str = "amd.com/gpu";

fn paths(given: &rocworker_device_plugin::api::deviceplugin::ContainerAllocateResponse) -> Vec<&str> {
    assert!(given.devices.iter().all(|it| it.permissions == "rw" && it.host_path == it.container_path));
    given.devices.iter().map(|it| it.host_path.as_str()).collect()
}

#[test]
fn a_container_gets_kfd_once_and_the_nodes_of_each_gpu_or_their_cdi_names_and_never_both() {
    let place = laid(&Machine::instinct(2, 8));
    let kubelet = Kubelet::start(place.path());
    let _running = Running::start(place.path(), &[]);
    let given = kubelet.allocate(GPU, &["0000:05:00.0", "amdgpu_xcp_0"]).unwrap();
    assert_eq!(
        paths(&given),
        ["/dev/kfd", "/dev/dri/card1", "/dev/dri/renderD128", "/dev/dri/card2", "/dev/dri/renderD129"]
    );
    assert!(given.cdi_devices.is_empty());
    assert_eq!(paths(&kubelet.allocate(GPU, &[]).unwrap()), [""; 0], "nothing asked, nothing given");
}

/// The spec as rocworker writes it for the machine.
fn write_spec(root: &std::path::Path) {
    let rocworker = std::env::var_os("ROCWORKER_PROGRAM").expect("cargo xtask test names the program");
    let output = Command::new(rocworker).arg("--root").arg(root).args(["cdi", "generate"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(root.join("etc/cdi/amd.json").is_file());
}

#[test]
fn by_cdi_a_container_gets_names_of_the_spec_that_rocworker_writes() {
    let place = laid(&Machine::instinct(2, 8));
    write_spec(place.path());
    let kubelet = Kubelet::start(place.path());
    let _running = Running::start(place.path(), &["--allocate=cdi"]);
    let given = kubelet.allocate(GPU, &["0000:15:00.0", "amdgpu_xcp_0"]).unwrap();
    let names: Vec<&str> = given.cdi_devices.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["amd.com/gpu=8", "amd.com/gpu=1"]);
    assert!(given.devices.is_empty());
}

#[test]
fn real_by_cdi_a_gpu_is_offered_only_while_the_spec_gives_exactly_it() {
    if !support::fuse::require() {
        return;
    }
    let machine = Partitioned::new(Driver::new(1));
    let kubelet = Kubelet::start(machine.root());
    let running = Running::start(machine.root(), &["--allocate=cdi"]);
    running.says("etc/cdi/amd.json: No such file or directory");
    running.says("no name that gives one of these alone, so none is offered: 0000:05:00.0");
    let spec = machine.root().join("etc/cdi/amd.json");
    fs::create_dir_all(spec.parent().unwrap()).unwrap();
    fs::write(&spec, "{").unwrap();
    running.says("etc/cdi/amd.json: not a CDI spec");
    fs::remove_file(&spec).unwrap();
    write_spec(machine.root());
    let mut watching = kubelet.watch(GPU);
    assert_eq!(ids(&watching.until("the card is offered", |list| list.len() == 1)), ["0000:05:00.0"]);
    // The card is divided, and the spec is an old one: its index 0 is the partition of the same nodes.
    machine.change(|driver| driver.switch(0, Compute::Cpx));
    running.says("amdgpu_xcp_0, amdgpu_xcp_1");
    write_spec(machine.root());
    watching.until("each partition is offered", |list| list.len() == 8);
}

#[test]
fn a_shared_gpu_is_given_once_however_many_of_its_slices_are_asked_for() {
    let place = laid(&Machine::instinct(1, 1));
    let kubelet = Kubelet::start(place.path());
    let _running = Running::start(place.path(), &["--replicas=2"]);
    let given = kubelet.allocate(GPU, &["0000:05:00.0-slice-0", "0000:05:00.0-slice-1"]).unwrap();
    assert_eq!(paths(&given), ["/dev/kfd", "/dev/dri/card1", "/dev/dri/renderD128"]);
    for wrong in ["0000:05:00.0", "0000:05:00.0-slice-2", "0000:05:00.0-slice-"] {
        assert!(kubelet.allocate(GPU, &[wrong]).is_err(), "{wrong}");
    }
}

#[test]
fn what_cannot_be_given_is_refused_by_a_sentence() {
    let place = laid(&Machine::instinct(2, 1));
    let kubelet = Kubelet::start(place.path());
    let _running = Running::start(place.path(), &[]);
    for (ids, sentence) in [
        (&["0000:99:00.0"][..], "amd.com/gpu has no device 0000:99:00.0: its card may be divided anew"),
        (&["0000:05:00.0", "0000:05:00.0"], "0000:05:00.0 is asked for twice"),
        (&["../../dev/sda"], "amd.com/gpu has no device ../../dev/sda"),
        (&[""], "amd.com/gpu has no device "),
    ] {
        let refused = kubelet.allocate(GPU, ids).unwrap_err();
        assert!(refused.message().starts_with(sentence), "{ids:?}: {}", refused.message());
    }
    assert!(kubelet.allocate(GPU, &["0000:05:00.0"]).is_ok());
}

#[test]
fn real_between_preference_and_allocation_a_switch_gives_no_container_the_wrong_gpu() {
    if !support::fuse::require() {
        return;
    }
    let machine = Partitioned::new(Driver::new(1));
    let kubelet = Kubelet::start(machine.root());
    let _running = Running::start(machine.root(), &[]);
    let preferred = kubelet.preferred(GPU, &["0000:05:00.0".to_owned()], &[], 1).unwrap();
    machine.change(|driver| driver.switch(0, Compute::Cpx));
    let refused = kubelet.allocate(GPU, &[&preferred[0]]);
    // Within the half second the plugin may have read the machine anew: then the id is a partition's, by its nodes.
    match refused {
        Err(refused) => {
            assert!(refused.message().contains("GPUs have just changed"), "{}", refused.message())
        }
        Ok(given) => assert_eq!(paths(&given)[2], "/dev/dri/renderD128"),
    }
    eventually("the first partition is given", || kubelet.allocate(GPU, &["0000:05:00.0"]).is_ok());
}

#[test]
fn ten_thousand_allocations_at_random_give_each_gpu_by_its_own_nodes_within_little_memory() {
    let place = laid(&Machine::instinct(8, 8));
    let kubelet = Kubelet::start(place.path());
    let running = Running::start(place.path(), &[]);
    let list = kubelet.watch(GPU).next().unwrap();
    let all: Vec<String> = list.into_iter().map(|it| it.id).collect();
    assert_eq!(all.len(), 64);
    let mut asker = Asker::new(&kubelet, GPU);
    let mut nodes = std::collections::BTreeMap::<String, Vec<String>>::new();
    let mut random = 0x5eed_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below
    };
    let (mut held, mut times): (Vec<Vec<String>>, Vec<Duration>) = (Vec::new(), Vec::new());
    for round in 0..10_000 {
        let free: Vec<String> =
            all.iter().filter(|id| !held.iter().flatten().any(|it| it == *id)).cloned().collect();
        if free.is_empty() || (next(2) == 0 && !held.is_empty()) {
            held.swap_remove(next(held.len()));
            continue;
        }
        let count = 1 + next(free.len().min(8));
        let ids: Vec<String> =
            (0..count).map(|at| free[(next(free.len()) + at) % free.len()].clone()).collect();
        let ids: Vec<String> =
            ids.into_iter().collect::<std::collections::BTreeSet<_>>().into_iter().collect();
        let asked: Vec<&str> = ids.iter().map(String::as_str).collect();
        let begun = std::time::Instant::now();
        let given = asker.allocate(&asked).unwrap();
        times.push(begun.elapsed());
        let mut paths = paths(&given).into_iter().skip(1);
        for id in &ids {
            let of_gpu: Vec<String> = paths.by_ref().take(2).map(str::to_owned).collect();
            let known = nodes.entry(id.clone()).or_insert_with(|| of_gpu.clone());
            assert_eq!(*known, of_gpu, "round {round}");
        }
        held.push(ids);
    }
    let distinct: std::collections::BTreeSet<&String> = nodes.values().flatten().collect();
    assert_eq!((nodes.len(), distinct.len()), (64, 128));
    let resident = running.most_resident_kib();
    times.sort();
    println!("{} allocations, p99 {:?}, {resident} KiB resident", times.len(), times[times.len() * 99 / 100]);
    assert!(resident < 16 << 10, "{resident} KiB");
}
