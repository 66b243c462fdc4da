//! Pods by containerd's CRI, with CNI, on captured machines: GPUs by the CDI names and by the nodes of a device plugin,
//! and by the wrapper as a RuntimeClass.

use layout::{Machine, XcpNames};
use real_engines::cri::{Container, Node, Parts};
use support::captures::{mi300x, phoenix_beside_rtx4080};

/// The only GPU of the captured phoenix: card1, renderD128 (0x80), KFD's major 237 (phoenix/kfd/dev).
const PHOENIX: &str = "/dev/dri/card1 e2:1 open\n/dev/dri/renderD128 e2:80 open\n/dev/kfd ed:0 open\n";
/// rocworker's default for `containerd.runtime`.
const WRAPPER: &str = "amd";

/// The captured MI300X, of which partition N has the render minor 128 + N, and so has the laid-out card N. Without the
/// links between the partitions: they are 8,000 files, and no CDI spec depends on them.
fn partitioned() -> Machine {
    let links = (0..65).map(|node| format!("/sys/class/kfd/kfd/topology/nodes/{node}/io_links"));
    links.fold(mi300x(XcpNames::Dot), |machine, links| machine.remove(&links))
}

#[test]
fn real_a_pod_gets_the_gpu_that_its_cdi_name_says_and_no_other() {
    let Some(parts) = Parts::found() else { return };
    let node = Node::on(&phoenix_beside_rtx4080(), &parts, "");
    let [name, version, api] = node.version();
    assert_eq!((name.as_str(), api.as_str()), ("containerd", "v1"));
    assert!(version.trim_start_matches('v').starts_with("2.1."), "{version}");

    let pod = node.run_pod("gpu", "");
    let gpu =
        node.run(&pod, &Container { name: "gpu", cdi_devices: &["amd.com/gpu=0"], ..Container::default() });
    let none = node.run(&pod, &Container { name: "none", ..Container::default() });
    assert_eq!(node.look(&gpu), PHOENIX);
    assert_eq!(node.look(&none), "");
    // The render node of the NVIDIA card is 226:129.
    assert_eq!(node.forge(&gpu, "226", "128"), "open\n");
    assert_eq!(node.forge(&gpu, "226", "129"), "denied\n");
    assert_eq!(node.forge(&none, "226", "128"), "denied\n");

    let nodes = ["/dev/kfd", "/dev/dri/card1", "/dev/dri/renderD128"];
    let annotated = Some("amd.com/gpu=0");
    for (name, container) in [
        ("pci", Container { cdi_devices: &["amd.com/gpu=0000:64:00.0"], ..Container::default() }),
        ("all", Container { cdi_devices: &["amd.com/gpu=all"], ..Container::default() }),
        ("annotated", Container { annotated, ..Container::default() }),
        ("both", Container { cdi_devices: &["amd.com/gpu=0"], annotated, ..Container::default() }),
        ("nodes", Container { devices: &nodes, ..Container::default() }),
    ] {
        let id = node.run(&pod, &Container { name, ..container });
        assert_eq!(node.look(&id), PHOENIX, "{name}");
    }
    node.remove(pod);
    node.assert_nothing_is_left();
}

#[test]
fn real_a_pod_that_names_an_unknown_gpu_does_not_start_and_containerd_names_it() {
    let Some(parts) = Parts::found() else { return };
    let node = Node::on(&phoenix_beside_rtx4080(), &parts, "");
    let pod = node.run_pod("unknown", "");
    for (name, container) in [
        ("amd.com/gpu=1", Container { cdi_devices: &["amd.com/gpu=1"], ..Container::default() }),
        (
            "amd.com/gpu=1",
            Container { cdi_devices: &["amd.com/gpu=0", "amd.com/gpu=1"], ..Container::default() },
        ),
        ("amd.com/gpu=7", Container { annotated: Some("amd.com/gpu=7"), ..Container::default() }),
        ("nvidia.com/gpu=0", Container { cdi_devices: &["nvidia.com/gpu=0"], ..Container::default() }),
    ] {
        let refusal = node.create(&pod, &Container { name: "unknown", ..container }).unwrap_err();
        assert!(refusal.contains(&format!("unresolvable CDI devices {name}")), "{refusal}");
    }
    // A failed create keeps neither the container's name nor its files.
    let gpu = Container { name: "unknown", cdi_devices: &["amd.com/gpu=0"], ..Container::default() };
    assert_eq!(node.look(&node.run(&pod, &gpu)), PHOENIX);
    node.remove(pod);
    node.assert_nothing_is_left();
}

#[test]
fn real_pods_get_partitions_by_their_numbers_and_reach_each_other() {
    let Some(parts) = Parts::found() else { return };
    let node = Node::on(&partitioned(), &parts, "");
    let ninth = "/dev/dri/card9 e2:9 open\n/dev/dri/renderD137 e2:89 open\n/dev/kfd 1ff:0 open\n";
    let two = "/dev/dri/card10 e2:a open\n/dev/dri/card62 e2:3e open\n/dev/dri/renderD138 e2:8a open\n\
               /dev/dri/renderD190 e2:be open\n/dev/kfd 1ff:0 open\n";

    let pods = ["one", "two"].map(|name| node.run_pod(name, ""));
    let asked = [&["amd.com/gpu=9"][..], &["amd.com/gpu=10", "amd.com/gpu=62"]];
    let [one, other] = [0, 1].map(|n| {
        node.run(&pods[n], &Container { name: "gpu", cdi_devices: asked[n], ..Container::default() })
    });
    assert_eq!(node.look(&one), ninth);
    assert_eq!(node.look(&other), two);
    assert_eq!(node.forge(&one, "226", "138"), "denied\n");
    assert_eq!(node.forge(&other, "226", "138"), "open\n");

    let mut addresses = pods.each_ref().map(|pod| pod.address.clone());
    let listed = node.exec(&one, &["/bin/busybox", "ip", "-o", "-4", "address"]);
    assert!(listed.contains(&format!("inet {}/24 ", addresses[0])), "{listed}");
    node.exec(&one, &["/bin/busybox", "ping", "-c", "1", "-W", "10", &addresses[1]]);
    addresses.sort();
    let mut kept = node.addresses();
    kept.sort();
    assert_eq!(kept, addresses);
    let (namespaces, ends) = node.networks();
    assert_eq!((namespaces.len(), ends.len()), (2, 2), "{namespaces:?} {ends:?}");

    pods.into_iter().for_each(|pod| node.remove(pod));
    node.assert_nothing_is_left();
}

#[test]
fn real_a_pod_of_the_wrappers_runtime_class_gets_what_the_scheduler_gave_it() {
    let Some(parts) = Parts::found() else { return };
    let node = Node::on(&phoenix_beside_rtx4080(), &parts, "");
    let pod = node.run_pod("wrapped", WRAPPER);
    let environment: &[(&str, &str)] = &[("AMD_VISIBLE_DEVICES", "0")];
    let asks = Container { name: "asks", environment, ..Container::default() };
    let id = node.create(&pod, &asks).unwrap();
    let refusal = node.start(&id).unwrap_err();
    assert!(refusal.contains("which counts for nothing in Kubernetes: request amd.com/gpu in"), "{refusal}");

    let given = node.run(
        &pod,
        &Container { name: "given", cdi_devices: &["amd.com/gpu=0"], environment, ..Container::default() },
    );
    assert_eq!(node.look(&given), PHOENIX);
    let asks_for_none = node.run(&pod, &Container { name: "none", ..Container::default() });
    assert_eq!(node.look(&asks_for_none), "");
    node.remove(pod);
    node.assert_nothing_is_left();
}

#[test]
fn real_a_pod_of_the_wrappers_runtime_class_gets_what_it_asks_for_where_the_policy_lets_pods_ask() {
    let Some(parts) = Parts::found() else { return };
    let node = Node::on(&phoenix_beside_rtx4080(), &parts, "wrapper: {pods: all}\n");
    let pod = node.run_pod("asks", WRAPPER);
    let asks =
        Container { name: "asks", environment: &[("AMD_VISIBLE_DEVICES", "0")], ..Container::default() };
    let id = node.run(&pod, &asks);
    assert_eq!(node.look(&id), PHOENIX);
    assert_eq!(node.forge(&id, "226", "129"), "denied\n");
    // Another runtime's pod has the variable, too, and plain runc makes nothing of it.
    let plain = node.run_pod("plain", "");
    let id = node.run(&plain, &asks);
    assert_eq!(node.look(&id), "");
    node.remove(plain);
    node.remove(pod);
    node.assert_nothing_is_left();
}
