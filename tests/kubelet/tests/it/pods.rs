use layout::Machine;
use real_kubelet::daemon::Signal;
use real_kubelet::kubelet::Kubelet;
use real_kubelet::node::{Node, Programs};
use real_kubelet::pod::Pod;

#[test]
fn real_a_static_pod_without_a_gpu_stays_as_it_is_while_the_kubelet_ends_and_comes_back() {
    let Some(programs) = Programs::required() else { return };
    let node = Node::of(&Machine::demo(), &programs);
    let mut kubelet = Kubelet::start(&node);
    kubelet.put(&Pod::new("plain"));
    let running = kubelet.running("plain");
    assert_eq!(running.restarts, 0);
    assert_eq!(kubelet.seen("plain"), "");
    for signal in [Signal::Term, Signal::Kill] {
        kubelet.stop(signal);
        kubelet.start_again();
        assert_eq!(kubelet.running("plain"), running, "{signal:?}");
    }
    kubelet.remove("plain");
}

#[test]
fn real_a_pod_that_asks_for_a_resource_of_which_the_kubelet_never_heard_runs_without_it() {
    let Some(programs) = Programs::required() else { return };
    let node = Node::of(&Machine::demo(), &programs);
    let kubelet = Kubelet::start(&node);
    kubelet.put(&Pod::new("asks").with("amd.com/gpu", 1));
    kubelet.running("asks");
    assert_eq!(kubelet.seen("asks"), "");
    assert_eq!(kubelet.registrations("amd.com/gpu"), 0);
    assert_eq!(kubelet.checkpoint(), None);
}
