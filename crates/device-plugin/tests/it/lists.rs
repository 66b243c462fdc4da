//! Which devices the kubelet hears of.

use std::fs;
use std::time::Instant;

use inventory::partitioning::Compute;
use layout::{Machine, Nodes};
use rocworker_device_plugin::api::deviceplugin::Device;
use support::partitioned::{Driver, Partitioned};
use support::{captures, cases};
use tempfile::TempDir;

use crate::kubelet::{Kubelet, ids};
use crate::running::Running;

pub(crate) fn laid(machine: &Machine) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    machine.lay_out(place.path(), Nodes::Recorded).unwrap();
    place
}

/// What AMD's plugin names these machines' devices (ROCm/k8s-device-plugin, internal/pkg/amdgpu/amdgpu.go), worked out by
/// hand from the captured files: phoenix' PCI_SLOT_NAME, and its numa_node of -1.
#[test]
fn a_captured_card_has_the_name_of_amds_plugin_no_numa_node_where_it_is_none_and_no_other_vendors_beside_it()
{
    for machine in [captures::phoenix(), captures::phoenix_beside_rtx4080()] {
        let place = laid(&machine);
        let kubelet = Kubelet::start(place.path());
        let _running = Running::start(place.path(), &[]);
        let list = kubelet.watch("amd.com/gpu").next().unwrap();
        let device = Device { id: "0000:64:00.0".to_owned(), health: "Healthy".to_owned(), topology: None };
        assert_eq!(list, [device]);
    }
}

#[test]
fn where_no_container_can_use_a_gpu_the_kubelet_hears_of_no_resource() {
    // Of the Radeon no KFD was captured.
    for machine in [captures::rx6900xt(), captures::rtx4080(1, 128), captures::a380()] {
        let place = laid(&machine);
        let kubelet = Kubelet::start(place.path());
        let running = Running::start(place.path(), &[]);
        running.says("this node has no GPU that a container can use: `rocworker detect` says why");
        assert_eq!(kubelet.registered(), []);
    }
}

#[test]
fn each_partition_of_a_captured_mi300x_in_cpx_is_a_device_in_both_spellings_of_the_kernel() {
    for (names, first, last) in [
        (layout::XcpNames::Dot, "amdgpu_xcp.0", "amdgpu_xcp.54"),
        (layout::XcpNames::Underscore, "amdgpu_xcp_0", "amdgpu_xcp_54"),
    ] {
        let place = laid(&captures::mi300x(names));
        let kubelet = Kubelet::start(place.path());
        let _running = Running::start(place.path(), &["--resource-names=single"]);
        let list = kubelet.watch("amd.com/gpu").next().unwrap();
        let ids = ids(&list);
        assert!(ids.contains(&first) && ids.contains(&last), "{ids:?}");
        assert!(ids.iter().all(|id| id.len() <= 63));
        // The last card's eighth partition was not captured.
        assert_eq!((ids[0], ids[8], ids.len()), ("0000:05:00.0", "0000:27:00.0", 63));
    }
}

#[test]
fn real_a_switch_of_partitions_reaches_the_kubelet() {
    if !support::fuse::require() {
        return;
    }
    let machine = Partitioned::new(Driver::new(2));
    let kubelet = Kubelet::start(machine.root());
    let _running = Running::start(machine.root(), &[]);
    let mut watching = kubelet.watch("amd.com/gpu");
    assert_eq!(ids(&watching.next().unwrap()), ["0000:05:00.0", "0000:15:00.0"]);
    let begun = Instant::now();
    machine.change(|driver| (0..2).for_each(|card| driver.switch(card, Compute::Cpx)));
    let list = watching.until("there are 16 partitions", |list| list.len() == 16);
    println!("a switch reached the kubelet after {:?}", begun.elapsed());
    assert!(ids(&list).contains(&"0000:05:00.0") && ids(&list).contains(&"amdgpu_xcp_0"), "{list:?}");
    machine.change(|driver| (0..2).for_each(|card| driver.switch(card, Compute::Spx)));
    assert_eq!(
        ids(&watching.until("they are whole again", |list| list.len() == 2)),
        ["0000:05:00.0", "0000:15:00.0"]
    );
}

#[test]
fn real_cards_that_are_divided_differently_are_offered_by_their_modes_or_not_at_all() {
    if !support::fuse::require() {
        return;
    }
    let machine = Partitioned::new(Driver::new(2));
    let kubelet = Kubelet::start(machine.root());
    let single = Running::start(machine.root(), &[]);
    let mut watching = kubelet.watch("amd.com/gpu");
    watching.until("both are offered", |list| list.len() == 2);
    machine.change(|driver| driver.switch(1, Compute::Cpx));
    watching.until("none is offered", <[_]>::is_empty);
    single.says("the cards are divided differently (cpx_nps1, spx_nps1)");
    single.says("use --resource-names mixed");
    drop(single);

    let kubelet = Kubelet::start(machine.root());
    let _mixed = Running::start(machine.root(), &["--resource-names=mixed"]);
    let [mut whole, mut parts] =
        ["amd.com/spx_nps1", "amd.com/cpx_nps1"].map(|resource| kubelet.watch(resource));
    assert_eq!(ids(&whole.next().unwrap()), ["0000:05:00.0"]);
    assert_eq!(parts.next().unwrap().len(), 8);
    // The last card of a resource leaves an empty list, without which the kubelet would keep its devices.
    machine.change(|driver| driver.switch(1, Compute::Spx));
    parts.until("there is no partition", <[_]>::is_empty);
    whole.until("both are whole", |list| list.len() == 2);
}

#[test]
fn a_processors_own_graphics_is_offered_only_where_there_is_no_card() {
    let Some(case) = cases::machine("igpu-beside") else { return };
    let kubelet = Kubelet::start(&case.root());
    let _running = Running::start(&case.root(), &[]);
    assert_eq!(ids(&kubelet.watch("amd.com/gpu").next().unwrap()), ["0000:03:00.0"]);
    // The processor's own alone: its card is not there.
    fs::remove_dir_all(case.root().join("sys/class/kfd/kfd/topology/nodes/1")).unwrap();
    drop(kubelet);
    let kubelet = Kubelet::start(&case.root());
    assert_eq!(
        ids(&kubelet.watch("amd.com/gpu").until("one is left", |list| ids(list) != ["0000:03:00.0"])),
        ["0000:0f:00.0"]
    );
}

#[test]
fn a_shared_gpu_is_a_device_for_each_slice() {
    let place = laid(&Machine::instinct(2, 1));
    let kubelet = Kubelet::start(place.path());
    let _running = Running::start(place.path(), &["--replicas=3"]);
    let list = kubelet.watch("amd.com/gpu").next().unwrap();
    let expected: Vec<String> = ["0000:05:00.0", "0000:15:00.0"]
        .iter()
        .flat_map(|id| (0..3).map(move |slice| format!("{id}-slice-{slice}")))
        .collect();
    assert_eq!(ids(&list), expected);
}

#[test]
fn a_mode_that_the_driver_does_not_know_names_no_resource() {
    let place = laid(&Machine::instinct(2, 1));
    let file = place.path().join("sys/bus/pci/devices/0000:05:00.0/current_compute_partition");
    fs::write(file, "UNKNOWN\n").unwrap();
    let kubelet = Kubelet::start(place.path());
    let running = Running::start(place.path(), &["--resource-names=mixed"]);
    assert_eq!(ids(&kubelet.watch("amd.com/spx_nps1").next().unwrap()), ["0000:15:00.0"]);
    running.says("0000:05:00.0 is not offered: its modes are not known: the driver says UNKNOWN and NPS1");
    drop(running);
    let kubelet = Kubelet::start(place.path());
    let _single = Running::start(place.path(), &[]);
    assert_eq!(kubelet.watch("amd.com/gpu").next().unwrap().len(), 2);
}
