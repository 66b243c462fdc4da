//! A kubelet that comes, goes, comes back, refuses, or is none.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;

use layout::Machine;
use nix::sys::signal::Signal;
use support::waiting::eventually;

use crate::kubelet::{FOLDER, Kubelet};
use crate::lists::laid;
use crate::running::Running;

const GPU: &str = "amd.com/gpu";

#[test]
fn a_plugin_registers_as_the_api_says() {
    let place = laid(&Machine::instinct(1, 1));
    let kubelet = Kubelet::start(place.path());
    let _running = Running::start(place.path(), &[]);
    let request = kubelet.plugin(GPU);
    assert_eq!((request.version.as_str(), request.endpoint.as_str()), ("v1beta1", "rocworker-gpu.sock"));
    assert!(request.options.unwrap().get_preferred_allocation_available);
}

#[test]
fn a_plugin_that_starts_before_the_kubelet_waits_for_it_and_each_kubelet_after_it_is_told() {
    let place = laid(&Machine::instinct(1, 1));
    let running = Running::start(place.path(), &[]);
    running.says("kubelet.sock is not there: the kubelet has not started, or its folder is another one (--kubelet-dir)");
    for _ in 0..3 {
        let kubelet = Kubelet::start(place.path());
        assert_eq!(kubelet.watch(GPU).next().unwrap().len(), 1);
    }
    assert_eq!(running.end(Signal::SIGTERM), Some(0));
}

#[test]
fn a_socket_of_the_kubelets_that_is_a_file_is_named_and_left_alone() {
    let place = laid(&Machine::instinct(1, 1));
    let socket = place.path().join(FOLDER).join("device-plugins/kubelet.sock");
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    fs::write(&socket, "mine").unwrap();
    let running = Running::start(place.path(), &[]);
    running.says("kubelet.sock is a plain file, not the kubelet's socket: remove it and restart the kubelet");
    assert_eq!(fs::read(&socket).unwrap(), b"mine");
    fs::remove_file(&socket).unwrap();
    let kubelet = Kubelet::start(place.path());
    assert_eq!(kubelet.watch(GPU).next().unwrap().len(), 1);
}

#[test]
fn a_kubelet_of_another_version_is_named_and_asked_again() {
    let place = laid(&Machine::instinct(1, 1));
    let kubelet = Kubelet::start(place.path());
    kubelet.refuse(Some("unsupported version: v1beta1"));
    let running = Running::start(place.path(), &[]);
    running.says("the kubelet refuses amd.com/gpu: unsupported version: v1beta1");
    assert_eq!(kubelet.registered(), []);
    kubelet.refuse(None);
    assert_eq!(kubelet.watch(GPU).next().unwrap().len(), 1);
}

#[test]
fn a_plugin_whose_socket_is_removed_registers_again() {
    let place = laid(&Machine::instinct(1, 1));
    let kubelet = Kubelet::start(place.path());
    let _running = Running::start(place.path(), &[]);
    let endpoint = kubelet.plugin(GPU).endpoint;
    // A stream of before, the kubelet's or another client's, does not stand for the new registration.
    let mut watching = kubelet.watch(GPU);
    watching.next().unwrap();
    let socket = place.path().join(FOLDER).join("device-plugins").join(endpoint);
    fs::remove_file(&socket).unwrap();
    eventually("the plugin has registered twice", || kubelet.registered().len() == 2);
    assert_eq!(kubelet.watch(GPU).next().unwrap().len(), 1);
}

#[test]
fn a_plugin_that_ends_removes_its_sockets_and_one_that_was_killed_is_replaced() {
    let place = laid(&Machine::instinct(1, 1));
    let kubelet = Kubelet::start(place.path());
    let folder = place.path().join(FOLDER).join("device-plugins");
    let sockets = || {
        let entries = fs::read_dir(&folder).unwrap().flatten();
        let sockets = entries.filter(|entry| entry.file_type().unwrap().is_socket());
        let mut names: Vec<String> = sockets.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    fs::write(folder.join("rocworker-notes"), "").unwrap();
    let killed = Running::start(place.path(), &[]);
    kubelet.plugin(GPU);
    assert_eq!(killed.end(Signal::SIGKILL), None);
    assert_eq!(sockets(), ["kubelet.sock", "rocworker-gpu.sock"]);
    let running = Running::start(place.path(), &[]);
    eventually("the plugin has registered again", || kubelet.registered().len() == 2);
    let mut watching = kubelet.watch(GPU);
    assert_eq!(watching.next().unwrap().len(), 1);
    assert_eq!(running.end(Signal::SIGTERM), Some(0));
    assert_eq!(watching.next(), None);
    assert_eq!(sockets(), ["kubelet.sock"]);
    assert!(folder.join("rocworker-notes").exists());
}

#[test]
fn another_folder_of_the_kubelets_is_an_option() {
    let place = laid(&Machine::instinct(1, 1));
    let microk8s = place.path().join("var/snap/microk8s/common");
    fs::create_dir_all(&microk8s).unwrap();
    let kubelet = Kubelet::start(&microk8s);
    let _running =
        Running::start(place.path(), &["--kubelet-dir", "/var/snap/microk8s/common/var/lib/kubelet"]);
    assert_eq!(kubelet.watch(GPU).next().unwrap().len(), 1);
}

/// A kubelet ends the stream of a plugin whose resource another one registers, or has registered before and then ends.
#[test]
fn a_resource_to_which_nobody_listens_any_more_is_registered_again() {
    let place = laid(&Machine::instinct(1, 1));
    let kubelet = Kubelet::start(place.path());
    let running = Running::start(place.path(), &[]);
    let mut watching = kubelet.watch(GPU);
    watching.next().unwrap();
    running.says("the kubelet has amd.com/gpu");
    drop(watching);
    running.says("the kubelet does not listen to amd.com/gpu any more, and is asked again");
    eventually("the plugin has registered twice", || kubelet.registered().len() == 2);
}

#[test]
fn a_resource_is_registered_again_once_amds_plugin_has_gone() {
    let place = laid(&Machine::instinct(1, 1));
    let kubelet = Kubelet::start(place.path());
    let amds = place.path().join(FOLDER).join("device-plugins/amd.com_gpu");
    fs::write(&amds, "").unwrap();
    let _running = Running::start(place.path(), &[]);
    let mut watching = kubelet.watch(GPU);
    watching.next().unwrap();
    assert_eq!(kubelet.registered().len(), 1);
    fs::remove_file(&amds).unwrap();
    eventually("the plugin has registered twice", || kubelet.registered().len() == 2);
}

#[test]
fn of_two_plugins_in_one_folder_the_first_serves_and_the_second_takes_over_once_it_has_ended() {
    let place = laid(&Machine::instinct(1, 1));
    let kubelet = Kubelet::start(place.path());
    let first = Running::start(place.path(), &[]);
    let mut watching = kubelet.watch(GPU);
    watching.next().unwrap();
    let second = Running::start(place.path(), &[]);
    second.says("another rocworker-device-plugin serves");
    assert_eq!(kubelet.registered().len(), 1);
    assert_eq!(first.end(Signal::SIGTERM), Some(0));
    eventually("the second registers", || kubelet.registered().len() == 2);
    assert_eq!(kubelet.watch(GPU).next().unwrap().len(), 1);
    // The one that waits leaves the socket of the one that serves.
    let third = Running::start(place.path(), &[]);
    third.says("another rocworker-device-plugin serves");
    assert_eq!(third.end(Signal::SIGTERM), Some(0));
    assert_eq!(kubelet.watch(GPU).next().unwrap().len(), 1);
}

#[test]
fn a_link_on_the_way_to_the_kubelets_folder_is_the_roots() {
    let place = laid(&Machine::instinct(1, 1));
    let kubelet = Kubelet::start(place.path());
    std::os::unix::fs::symlink("/var/lib/kubelet", place.path().join("var/lib/other")).unwrap();
    let _running = Running::start(place.path(), &["--kubelet-dir=/var/lib/other"]);
    assert_eq!(kubelet.watch(GPU).next().unwrap().len(), 1);
}
