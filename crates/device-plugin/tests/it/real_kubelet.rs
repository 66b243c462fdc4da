//! A real kubelet hands out what the plugin offers: a pod opens its GPU, and keeps it while either side goes and comes back.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use layout::{Machine, health};
use real_engines::machine::seen_on_demo;
use real_kubelet::daemon::Signal;
use real_kubelet::kubelet::Kubelet;
use real_kubelet::node::{Node, Programs};
use real_kubelet::plugin::Plugin;
use real_kubelet::pod::{CONTAINER, Pod};

const GPU: &str = "amd.com/gpu";

/// The GPUs of the demo machine by their indexes: a W7900, and an MI300X in eight partitions.
const DEMO: [&str; 9] = [
    "0000:03:00.0",
    "0000:c1:00.0",
    "amdgpu_xcp_0",
    "amdgpu_xcp_1",
    "amdgpu_xcp_2",
    "amdgpu_xcp_3",
    "amdgpu_xcp_4",
    "amdgpu_xcp_5",
    "amdgpu_xcp_6",
];

fn start<'a>(node: &'a Node, arguments: &[&str]) -> Plugin<'a> {
    Plugin::start(node, Path::new(env!("CARGO_BIN_EXE_rocworker-device-plugin")), arguments)
}

fn ids<'a>(ids: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    ids.into_iter().map(str::to_owned).collect()
}

/// The output of a look in a container that has these devices of the demo machine. The nodes have no driver in this kernel:
/// that one opens says that its mode and the device cgroup let the pod through.
fn seen_with(devices: &BTreeSet<&str>) -> String {
    let index = |id: &&str| u32::try_from(DEMO.iter().position(|known| known == id).unwrap()).unwrap();
    seen_on_demo(devices.iter().map(index), "open")
}

/// The devices of a pod by the kubelet's checkpoint, after the pod has seen exactly their nodes.
#[track_caller]
fn given(kubelet: &Kubelet, pod: &str) -> BTreeSet<String> {
    let uid = kubelet.running(pod).uid;
    let checkpoint = kubelet.checkpoint().unwrap();
    let devices = checkpoint.ids_of(&uid);
    assert_eq!(kubelet.seen(pod), seen_with(&devices), "{devices:?}");
    ids(devices)
}

/// Checks that the kubelet refuses a pod because it asks for more devices than are healthy and free.
#[track_caller]
fn assert_refused(kubelet: &Kubelet, pod: &str, requested: u32, available: u32) {
    let (reason, message) = kubelet.refusal(pod);
    assert_eq!(reason, "UnexpectedAdmissionError", "{message}");
    let said = format!(
        "requested number of devices unavailable for {GPU}. Requested: {requested}, Available: {available},"
    );
    assert!(message.contains(&said), "{message}");
}

#[test]
fn real_pods_open_the_gpus_that_the_kubelet_gives_them_and_more_than_the_node_has_are_refused() {
    let Some(programs) = Programs::required() else { return };
    let node = Node::of(&Machine::demo(), &programs);
    let kubelet = Kubelet::start(&node);
    let _plugin = start(&node, &[]);
    assert_eq!(kubelet.registered(GPU, 9).registered[GPU], ids(DEMO));
    kubelet.put(&Pod::new("none"));
    kubelet.put(&Pod::new("one").with(GPU, 1));
    kubelet.put(&Pod::new("two").with(GPU, 2));
    let (one, two) = (given(&kubelet, "one"), given(&kubelet, "two"));
    assert_eq!((one.len(), two.len()), (1, 2));
    assert!(one.is_disjoint(&two), "{one:?} {two:?}");
    assert_eq!(kubelet.seen("none"), "");
    let checkpoint = kubelet.checkpoint().unwrap();
    assert_eq!(checkpoint.allocated.len(), 2);
    assert!(checkpoint.allocated.iter().all(|it| it.resource == GPU && it.container == CONTAINER));
    kubelet.put(&Pod::new("seven").with(GPU, 7));
    assert_refused(&kubelet, "seven", 7, 6);
    kubelet.remove("two");
    kubelet.put(&Pod::new("eight").with(GPU, 8));
    assert_eq!(given(&kubelet, "eight"), &ids(DEMO) - &one);
}

#[test]
fn real_a_kubelet_that_ends_and_comes_back_finds_the_plugin_again_and_its_pods_with_their_gpus() {
    let Some(programs) = Programs::required() else { return };
    let node = Node::of(&Machine::demo(), &programs);
    let mut kubelet = Kubelet::start(&node);
    let mut plugin = start(&node, &[]);
    kubelet.registered(GPU, 9);
    kubelet.put(&Pod::new("stays").with(GPU, 1));
    let running = kubelet.running("stays");
    let mut taken = given(&kubelet, "stays");
    for signal in [Signal::Term, Signal::Kill] {
        let allocated = kubelet.checkpoint().unwrap().allocated;
        kubelet.stop(signal);
        kubelet.start_again();
        let registered_anew = || (kubelet.registrations(GPU) == 1).then_some(());
        kubelet.until("the plugin registers again", registered_anew);
        assert_eq!(kubelet.registered(GPU, 9).allocated, allocated, "{signal:?}");
        assert_eq!(kubelet.running("stays"), running, "{signal:?}");
        let name = format!("after-{signal:?}").to_lowercase();
        kubelet.put(&Pod::new(&name).with(GPU, 1));
        let further = given(&kubelet, &name);
        assert!(further.is_disjoint(&taken), "{signal:?}: {further:?} {taken:?}");
        taken.extend(further);
    }
    assert!(plugin.runs(), "{}", plugin.log());
    assert_eq!(kubelet.running("stays"), running);
}

#[test]
fn real_while_the_plugin_is_gone_its_pods_run_and_new_ones_are_refused_until_it_comes_back() {
    let Some(programs) = Programs::required() else { return };
    let node = Node::of(&Machine::demo(), &programs);
    let kubelet = Kubelet::start(&node);
    let mut plugin = start(&node, &[]);
    kubelet.registered(GPU, 9);
    kubelet.put(&Pod::new("stays").with(GPU, 1));
    let running = kubelet.running("stays");
    let mut taken = given(&kubelet, "stays");
    for (signal, ends) in [(Signal::Term, 1), (Signal::Kill, 2)] {
        plugin.stop(signal);
        let missed =
            || kubelet.log().matches(&format!("Mark all resources Unhealthy for resource {GPU}")).count();
        kubelet.until("the kubelet misses the plugin", || (missed() == ends).then_some(()));
        let name = format!("without-{signal:?}").to_lowercase();
        kubelet.put(&Pod::new(&name).with(GPU, 1));
        assert_refused(&kubelet, &name, 1, 0);
        plugin.start_again();
        let registered_anew = || (kubelet.registrations(GPU) == 1 + ends as u64).then_some(());
        kubelet.until("the plugin registers again", registered_anew);
        kubelet.registered(GPU, 9);
        assert_eq!(kubelet.running("stays"), running, "{signal:?}");
        let name = format!("after-{signal:?}").to_lowercase();
        kubelet.put(&Pod::new(&name).with(GPU, 1));
        let further = given(&kubelet, &name);
        assert!(further.is_disjoint(&taken), "{signal:?}: {further:?} {taken:?}");
        taken.extend(further);
    }
}

#[test]
fn real_a_card_in_quarantine_is_given_to_no_pod_until_it_leaves_it() {
    let Some(programs) = Programs::required() else { return };
    let node = Node::of(&Machine::instinct(2, 1), &programs);
    let kubelet = Kubelet::start(&node);
    let _plugin = start(&node, &[]);
    let both = kubelet.registered(GPU, 2).registered[GPU].clone();
    let judge = |is_in_trouble| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let file = node.machine("/run/rocworker/health.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, health(2, is_in_trouble, now)).unwrap();
    };
    judge(true);
    let left = kubelet.registered(GPU, 1).registered[GPU].clone();
    kubelet.put(&Pod::new("two").with(GPU, 2));
    assert_refused(&kubelet, "two", 2, 1);
    kubelet.put(&Pod::new("one").with(GPU, 1));
    let uid = kubelet.running("one").uid;
    assert_eq!(ids(kubelet.checkpoint().unwrap().ids_of(&uid)), left);
    judge(false);
    assert_eq!(kubelet.registered(GPU, 2).registered[GPU], both);
}

#[test]
fn real_partitions_are_resources_by_their_modes_and_a_gpu_is_shared_by_its_slices() {
    let Some(programs) = Programs::required() else { return };
    let node = Node::of(&Machine::demo(), &programs);
    let kubelet = Kubelet::start(&node);
    let _plugin = start(&node, &["--resource-names=mixed", "--replicas=2"]);
    let slices = |id: &str| [format!("{id}-slice-0"), format!("{id}-slice-1")];
    assert_eq!(kubelet.registered(GPU, 2).registered[GPU], slices(DEMO[0]).into());
    let partitions: BTreeSet<String> = DEMO[1..].iter().copied().flat_map(slices).collect();
    assert_eq!(kubelet.registered("amd.com/cpx_nps1", 16).registered["amd.com/cpx_nps1"], partitions);
    for pod in ["first", "second"] {
        kubelet.put(&Pod::new(pod).with(GPU, 1));
        kubelet.running(pod);
        assert_eq!(kubelet.seen(pod), seen_on_demo([0], "open"));
    }
    kubelet.put(&Pod::new("third").with(GPU, 1));
    assert_refused(&kubelet, "third", 1, 0);
}
