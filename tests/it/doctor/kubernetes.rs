//! `doctor` on a Kubernetes node: whether its kubelet can give pods the GPUs that are there.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use layout::{Entry, Gpu, Machine, Module, Nodes, XcpNames};
use serde_json::{Value, json};
use support::detect::scratch;

use crate::doctor::{
    ADDRESS, PROGRAM, assert_check, card, checks, doctor_beneath, find, good, kfd, with_groups,
};

const PLUGINS: &str = "/var/lib/kubelet/device-plugins";
pub(super) const CHECKPOINT: &str = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";
const NFD: &str = "/etc/kubernetes/node-feature-discovery/features.d";
const NAME: &str = "kubernetes";
/// An answer of a device plugin with the CDI device amd.com/gpu=0 (ContainerAllocateResponse), in base64.
pub(super) const BY_CDI: &str = "Kg8KDWFtZC5jb20vZ3B1PTA=";
const BY_PLUGIN: &str = "delete the device plugin's pod of this node";
pub(super) const POD: &str = "9b3f6f1c-8d0f-4f6e-9d3c-0a5f6f1c8d0f";

/// A node of kubeadm's.
pub(super) fn node(machine: Machine) -> Machine {
    machine.put("/var/lib/kubelet/config.yaml", "").put(PLUGINS, Entry::Directory)
}

/// The doctor's answer on a machine, beside whose kubelet these sockets are.
fn doctor(machine: &Machine, sockets: &[&str]) -> Value {
    let root = scratch();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    // The name of a socket that is bound has 108 bytes at most.
    for socket in sockets {
        drop(UnixListener::bind(root.path().join(&PLUGINS[1..]).join(socket)).unwrap());
    }
    doctor_beneath(root.path()).1
}

/// What a kubelet since Kubernetes 1.20 writes.
pub(super) fn checkpoint(registered: &Value, given: &Value) -> String {
    json!({"Data": {"PodDeviceEntries": given, "RegisteredDevices": registered}, "Checksum": 3_184_273_312_u32}).to_string()
}

pub(super) fn given(pod: &str, devices: &Value, answer: &str) -> Value {
    json!({"PodUID": pod, "ContainerName": "train", "ResourceName": "amd.com/gpu", "DeviceIDs": devices, "AllocResp": answer})
}

fn subjects(answer: &Value) -> Vec<&str> {
    let of_node = checks(answer).iter().filter(|check| check["name"] == NAME);
    of_node.map(|check| check["subject"].as_str().unwrap_or("")).collect()
}

#[test]
fn a_machine_without_a_kubelet_has_no_check_of_one_and_a_node_without_amds_gpus_one_that_is_skipped() {
    let empty = good().put("/var/lib/kubelet", Entry::Directory);
    for machine in [good(), empty] {
        assert!(subjects(&doctor(&machine, &[])).is_empty());
    }
    let others = node(with_groups(Machine::new().gpu(Gpu::nvidia(ADDRESS, 0x2704))));
    let answer = doctor(&others, &["kubelet.sock"]);
    assert_check(find(&answer, NAME, ""), "skipped", "no AMD GPU", "");
    assert_eq!(subjects(&answer), [""]);
}

#[test]
fn a_node_in_order_passes_each_check() {
    let devices = json!({"amd.com/gpu": [ADDRESS], "nvidia.com/gpu": null});
    let held = json!([given(POD, &json!({"-1": [ADDRESS]}), "")]);
    let machine = node(good())
        .put(CHECKPOINT, checkpoint(&devices, &held))
        .put(&format!("/var/lib/kubelet/pods/{POD}"), Entry::Directory)
        .put(
            &format!("{NFD}/rocworker"),
            "# Written by rocworker's daemon: docs/kubernetes.md\n# +expiry-time=2999-01-01T00:00:00Z\namd.com/gpu=true\n",
        );
    for (socket, plugin) in [
        ("rocworker-gpu.sock", "rocworker's device plugin: rocworker-gpu.sock"),
        ("amd.com_gpu", "AMD's device plugin: amd.com_gpu"),
    ] {
        let answer = doctor(&machine, &["kubelet.sock", socket]);
        for (subject, evidence) in [
            ("kubelet", "/var/lib/kubelet/device-plugins/kubelet.sock is there"),
            ("plugin", plugin),
            ("devices", "amd.com/gpu has 1 device: each GPU that containers can use"),
            ("pods", "1 pod has devices, and each of these is here"),
            ("labels", "counts until 2999-01-01T00:00:00Z"),
        ] {
            assert_check(find(&answer, NAME, subject), "ok", evidence, "");
        }
        assert_eq!(subjects(&answer), ["kubelet", "plugin", "devices", "pods", "labels"]);
    }
}

#[test]
fn a_kubelets_socket_that_is_missing_or_something_else_is_named_with_the_command_of_what_runs_the_kubelet() {
    let absent = "kubelet.sock is not there: no device plugin can register";
    let folder = format!("{PLUGINS}/kubelet.sock");
    for (machine, status, evidence, remedy) in [
        (node(good()), "warning", absent, "systemctl restart kubelet, then"),
        (
            node(good()).put(&folder, ""),
            "failed",
            "is a plain file",
            "remove it, then systemctl restart kubelet",
        ),
        (node(good()).put(&folder, Entry::Directory), "failed", "is a folder", "remove it, then"),
        (node(good()).put("/usr/local/bin/k3s", ""), "warning", absent, "journalctl --unit k3s"),
        (
            node(good()).put("/usr/local/bin/k3s", "").put(
                "/etc/systemd/system/k3s-agent.service",
                "[Service]\nExecStart=/usr/local/bin/k3s agent\n",
            ),
            "warning",
            absent,
            "systemctl restart k3s-agent, then",
        ),
        (node(good()).put("/usr/bin/rke2", ""), "warning", absent, "systemctl restart rke2-server"),
        (node(good()).put("/snap/bin/microk8s", ""), "warning", absent, "microk8s stop && microk8s start"),
        (node(good()).put("/usr/local/bin/k0s", ""), "warning", absent, "k0s stop && k0s start"),
    ] {
        let answer = doctor(&machine, &[]);
        assert_check(find(&answer, NAME, "kubelet"), status, evidence, remedy);
    }
}

#[test]
fn a_socket_that_a_dead_kubelet_has_left_fails_and_one_at_which_it_listens_passes() {
    let line = |flags: &str| {
        format!(
            "Num RefCount Protocol Flags Type St Inode Path\n0: 00000002 00000000 {flags} 0001 01 42 {PLUGINS}/kubelet.sock\n"
        )
    };
    let listening = node(good()).put("/proc/net/unix", line("00010000"));
    assert_eq!(find(&doctor(&listening, &["kubelet.sock"]), NAME, "kubelet")["status"], "ok");
    for dead in [line("00000000"), line("00010000").replace("kubelet.sock", "other.sock")] {
        let answer = doctor(&node(good()).put("/proc/net/unix", dead), &["kubelet.sock"]);
        let evidence = "kubelet.sock: the kubelet has ended";
        assert_check(find(&answer, NAME, "kubelet"), "failed", evidence, "systemctl restart kubelet, then");
    }
}

#[test]
fn the_kubelet_of_microk8s_and_k0s_counts_and_microk8ss_link_is_followed() {
    let linked = good()
        .put("/var/lib/kubelet", Entry::Link("../snap/microk8s/common/var/lib/kubelet".to_owned()))
        .put("/var/snap/microk8s/common/var/lib/kubelet/device-plugins/kubelet.sock", "");
    assert_check(find(&doctor(&linked, &[]), NAME, "kubelet"), "failed", "is a plain file", "remove it");
    let k0s = good().put("/var/lib/k0s/kubelet/config.yaml", "");
    assert_check(find(&doctor(&k0s, &[]), NAME, "kubelet"), "warning", "is not there", "restart");
}

#[test]
fn no_plugin_and_two_plugins_are_found_and_another_way_to_gpus_is_none() {
    let none = "no device plugin serves AMD's GPUs";
    assert_check(
        find(&doctor(&node(good()), &["kubelet.sock", "nvidia.com_gpu"]), NAME, "plugin"),
        "warning",
        none,
        "docs/kubernetes.md",
    );
    let both = doctor(&node(good()), &["kubelet.sock", "amd.com_gpu", "rocworker-gpu.sock"]);
    assert_check(
        find(&both, NAME, "plugin"),
        "warning",
        "AMD's (amd.com_gpu) and rocworker's (rocworker-gpu.sock)",
        "remove the DaemonSet of one of them",
    );
    // Neither has registered.
    assert_check(find(&both, NAME, "devices"), "warning", "no healthy device of AMD's", BY_PLUGIN);
    for (machine, why) in [
        (node(good()).put("/var/lib/kubelet/plugins/gpu.amd.com", Entry::Directory), "AMD's DRA driver"),
        (node(good()).put("/etc/rocworker/config.yaml", "wrapper: {pods: all}\n"), "wrapper.pods"),
    ] {
        assert_check(find(&doctor(&machine, &["kubelet.sock"]), NAME, "plugin"), "skipped", why, "");
    }
}

/// A node with a card in 8 partitions.
fn partitioned() -> Machine {
    node(with_groups(Machine::instinct(1, 8)))
}

/// What the plugins register of a machine: the card's address is its first partition's id.
fn ids(machine: &Machine) -> Vec<String> {
    let root = scratch();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    let mut ids: Vec<String> = fs::read_dir(root.path().join("sys/class/drm"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("renderD"))
        .map(|path| {
            fs::read_link(path.join("device")).unwrap().file_name().unwrap().to_str().unwrap().to_owned()
        })
        .collect();
    ids.sort();
    ids
}

#[test]
fn devices_are_held_against_the_gpus_that_containers_can_use() {
    let all = ids(&partitioned());
    assert_eq!(all.len(), 8, "{all:?}");
    let slices: Vec<String> =
        all.iter().flat_map(|id| [0, 1].map(|number| format!("{id}-slice-{number}"))).collect();
    let mixed = json!({"amd.com/cpx_nps1": all[1..], "amd.com/gpu": [all[0]]});
    let more = [&all[..], &["amdgpu_xcp_77".to_owned()]].concat();
    let cases = [
        (json!({"amd.com/gpu": all}), "ok", "amd.com/gpu has 8 devices: each GPU", ""),
        (json!({"amd.com/gpu": slices}), "ok", "amd.com/gpu has 16 devices (slices of 8 GPUs): each GPU", ""),
        (mixed, "ok", "amd.com/cpx_nps1 has 7 devices, amd.com/gpu has 1 device: each GPU", ""),
        (
            json!({"amd.com/gpu": all[..1]}),
            "warning",
            "amd.com/gpu has 1 device, and containers can use 8 GPUs: 7 are not registered or not healthy: amdgpu_xcp_",
            "rocworker health",
        ),
        (
            json!({"amd.com/gpu": more}),
            "failed",
            "amd.com/gpu has 9 devices, and 1 of them is here no more: amdgpu_xcp_77. A card",
            BY_PLUGIN,
        ),
        (json!({"amd.com/gpu": null}), "warning", "no healthy device of AMD's", BY_PLUGIN),
        (json!({}), "warning", "no healthy device of AMD's", BY_PLUGIN),
        (Value::Null, "warning", "no healthy device of AMD's", BY_PLUGIN),
    ];
    for (registered, status, evidence, remedy) in cases {
        let machine = partitioned().put(CHECKPOINT, checkpoint(&registered, &Value::Null));
        let answer = doctor(&machine, &["kubelet.sock", "amd.com_gpu"]);
        assert_check(find(&answer, NAME, "devices"), status, evidence, remedy);
    }
}

/// What the kubelet of Kubernetes 1.20.2 wrote of the demo's machine and two static pods, with rocworker's device plugin
/// and `--resource-names=mixed --replicas=2`.
const REAL: &str = include_str!("kubelet_checkpoint.json");

#[test]
fn a_checkpoint_that_a_real_kubelet_wrote_is_read() {
    let mut machine = node(with_groups(Machine::demo())).put(CHECKPOINT, REAL);
    for pod in ["72cbf60bdceed69d81ac8a0943102839", "8710d192d9c5d7c753ed28f51d9ae1c0"] {
        machine = machine.put(&format!("/var/lib/kubelet/pods/{pod}"), Entry::Directory);
    }
    let sockets = ["kubelet.sock", "rocworker-gpu.sock", "rocworker-cpx_nps1.sock"];
    let answer = doctor(&machine, &sockets);
    let has = "amd.com/cpx_nps1 has 16 devices (slices of 8 GPUs), amd.com/gpu has 2 devices (slices of 1 GPU): each GPU";
    assert_check(find(&answer, NAME, "devices"), "ok", has, "");
    assert_check(find(&answer, NAME, "pods"), "ok", "2 pods have devices, and each of these is here", "");
    let other = node(good()).put(CHECKPOINT, REAL);
    let gone =
        "and 8 of them are here no more: 0000:c1:00.0, amdgpu_xcp_0, amdgpu_xcp_1, amdgpu_xcp_2 and 4 more";
    assert_check(find(&doctor(&other, &sockets), NAME, "devices"), "failed", gone, BY_PLUGIN);
}

#[test]
fn a_partition_counts_in_both_spellings_of_the_kernel() {
    for (names, id) in [(XcpNames::Dot, "amdgpu_xcp.0"), (XcpNames::Underscore, "amdgpu_xcp_0")] {
        let machine = partitioned().xcp_names(names);
        let ids = ids(&machine);
        assert!(ids.iter().any(|it| it == id), "{ids:?}");
        let machine = machine.put(CHECKPOINT, checkpoint(&json!({"amd.com/gpu": ids}), &Value::Null));
        let answer = doctor(&machine, &["kubelet.sock", "rocworker-gpu.sock"]);
        assert_check(find(&answer, NAME, "devices"), "ok", "amd.com/gpu has 8 devices: each GPU", "");
    }
}

#[test]
fn a_registered_gpu_that_no_container_can_use_is_named() {
    let second = "0000:83:00.0";
    let machine = node(with_groups(Machine::new()))
        .module(Module::new("amdgpu"))
        .gpu(card(ADDRESS, 0, 128))
        .gpu(card(second, 1, 129))
        .kfd(kfd())
        .put(CHECKPOINT, checkpoint(&json!({"amd.com/gpu": [ADDRESS, second]}), &Value::Null));
    let answer = doctor(&machine, &["kubelet.sock", "amd.com_gpu"]);
    let evidence = "amd.com/gpu has 2 devices, and no container can use 0000:83:00.0";
    assert_check(find(&answer, NAME, "devices"), "warning", evidence, "kubectl cordon");
}

#[test]
fn a_pod_whose_device_has_gone_is_named_while_the_pod_is_there() {
    let registered = json!({"amd.com/gpu": [ADDRESS]});
    let by_node = json!({"0": ["amdgpu_xcp_30-slice-1"], "1": null});
    // Before Kubernetes 1.20.
    let list = json!(["amdgpu_xcp_30"]);
    for devices in [&by_node, &list] {
        let held = json!([given(POD, devices, "")]);
        let machine = node(good()).put(CHECKPOINT, checkpoint(&registered, &held));
        assert!(!subjects(&doctor(&machine, &["kubelet.sock"])).contains(&"pods"), "it has ended");
        for kubelet in ["/var/lib/kubelet", "/var/lib/k0s/kubelet"] {
            let running = machine.clone().put(&format!("{kubelet}/pods/{POD}"), Entry::Directory);
            let answer = doctor(&running, &["kubelet.sock"]);
            let evidence = format!("container train of pod {POD} has amdgpu_xcp_30");
            assert_check(find(&answer, NAME, "pods"), "failed", &evidence, &format!("| grep {POD}"));
        }
    }
}

#[test]
fn a_checkpoint_that_cannot_be_read_makes_its_devices_unknown_with_the_reason() {
    for (text, why) in [
        ("", "EOF"),
        ("{\"Data\":", "EOF"),
        ("[]", "kubelet_internal_checkpoint: invalid"),
        ("{}", "missing field"),
    ] {
        let answer = doctor(&node(good()).put(CHECKPOINT, text), &["kubelet.sock", "amd.com_gpu"]);
        assert_check(find(&answer, NAME, "devices"), "skipped", "which the kubelet has is not known", "");
        assert_check(find(&answer, NAME, "devices"), "skipped", why, "");
    }
    let file = good().put("/var/lib/kubelet/config.yaml", "").put(PLUGINS, "");
    assert_check(find(&doctor(&file, &[]), NAME, "plugin"), "skipped", "device-plugins", "");
    let folder = node(good()).put(CHECKPOINT, Entry::Directory);
    assert_check(
        find(&doctor(&folder, &[]), NAME, "devices"),
        "skipped",
        "which the kubelet has is not known",
        "",
    );
}

#[test]
fn nfds_feature_file_is_missing_of_another_program_or_has_expired() {
    let file = format!("{NFD}/rocworker");
    let header = "# Written by rocworker's daemon: docs/kubernetes.md\n";
    let folder = || node(good()).put(NFD, Entry::Directory);
    let expired = format!("{header}# +expiry-time=2026-01-01T00:00:00Z\namd.com/gpu=true\n");
    for (machine, evidence, remedy) in [
        (folder(), "features.d/rocworker is not there", "systemctl restart rocworker"),
        (folder().put(&file, "amd.com/gpu=true\n"), "is another program's", "move it to another name"),
        (
            folder().put(&file, expired),
            "has counted until 2026-01-01T00:00:00Z",
            "journalctl --unit rocworker",
        ),
    ] {
        assert_check(find(&doctor(&machine, &[]), NAME, "labels"), "warning", evidence, remedy);
    }
    let off = folder().put("/etc/rocworker/config.yaml", "daemon: {unit: false}\n");
    assert_check(find(&doctor(&off, &[]), NAME, "labels"), "skipped", "daemon.unit: false", "");
    assert!(!subjects(&doctor(&node(good()), &[])).contains(&"labels"));
}

/// A file of k3s' with containerd 1.7 (k3s-io/k3s, pkg/agent/templates), shortened.
pub(super) const K3S_1_7: &str = "version = 2\n\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  stream_server_port = \"10010\"\n  \
                           enable_unprivileged_ports = true\n\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n  \
                           snapshotter = \"overlayfs\"\n";
const K3S_2: &str =
    "version = 3\n\n[plugins.'io.containerd.cri.v1.runtime']\n  enable_unprivileged_ports = true\n";

const K3S: &str = "/var/lib/rancher/k3s/agent/etc/containerd";
const RKE2: &str = "/var/lib/rancher/rke2/agent/etc/containerd";
const MICROK8S: &str = "/var/snap/microk8s/current/args";
const BELOW: &str = "set enable_cdi = true below [plugins.\"io.containerd.grpc.v1.cri\"] in";

/// Where CDI is off for certain, off in one of two releases, or on: what doctor says of it, and what every command says
/// behind the engine's name.
#[test]
fn cdi_in_a_containerd_of_k3s_rke2_or_microk8s_is_named_with_the_line_that_switches_it_on() {
    let on = |text: &str| {
        text.replace("  enable_unprivileged_ports", "  enable_cdi = true\n  enable_unprivileged_ports")
    };
    let off = on(K3S_2).replace("enable_cdi = true", "enable_cdi = false");
    let elsewhere =
        on(K3S_1_7).replace("enable_cdi = true", "enable_cdi = true\n  cdi_spec_dirs = [\"/srv/cdi\"]");
    let k3s = |text: &str| node(good()).put(&format!("{K3S}/config.toml"), text);
    let rke2 = |text: &str| node(good()).put(&format!("{RKE2}/config.toml"), text);
    let microk8s = |text: &str| node(good()).put(&format!("{MICROK8S}/containerd.toml"), text);
    let template = |text: &str| k3s(K3S_1_7).put(&format!("{K3S}/config.toml.tmpl"), text);
    let whole = "Otherwise write the whole template of its release, and set enable_cdi = true below";
    for (machine, status, evidence, everywhere) in [
        (k3s(K3S_2), "ok", "CDI is on, and reads /etc/cdi", None),
        (k3s(&on(K3S_1_7)), "ok", "CDI is on, and reads /etc/cdi", None),
        (microk8s(&on(K3S_1_7)), "ok", "CDI is on, and reads /etc/cdi", None),
        (
            k3s(K3S_1_7),
            "ok",
            "CDI is off; only",
            Some(format!("update k3s to v1.31.6, v1.32.2 or later, which has CDI on. {whole}")),
        ),
        (
            rke2(K3S_1_7),
            "ok",
            "CDI is off; only",
            Some(format!("in {RKE2}/config.toml.tmpl, then systemctl restart rke2-server")),
        ),
        (
            k3s(&off),
            "ok",
            "CDI is off; only",
            Some(format!(
                "set enable_cdi = true below [plugins.\"io.containerd.cri.v1.runtime\"] in {K3S}/config-v3.toml.tmpl, then \
                 systemctl restart k3s"
            )),
        ),
        (
            template("{{ template \"base\" . }}\n"),
            "skipped",
            "off in containerd 1.7 and on from 2.0",
            Some(whole.to_owned()),
        ),
        (
            template("version = 2\n"),
            "skipped",
            "off in containerd 1.7",
            Some(format!(
                "is off if this containerd is 1.7; only a device plugin with --allocate=cdi needs it: {BELOW} {K3S}/config.toml.tmpl"
            )),
        ),
        (
            microk8s(K3S_1_7),
            "skipped",
            "off in containerd 1.7",
            Some(format!(
                "{BELOW} {MICROK8S}/containerd-template.toml, then microk8s stop && microk8s start"
            )),
        ),
        (
            k3s(&elsewhere),
            "ok",
            "CDI reads /srv/cdi, and not /etc/cdi; only a device plugin with --allocate=cdi needs it. For that set \
             cdi_spec_dirs = [\"/srv/cdi\", \"/etc/cdi\"] below [plugins.\"io.containerd.grpc.v1.cri\"] in",
            None,
        ),
        (k3s("version = "), "skipped", "whether CDI is on is not known", None),
    ] {
        let root = scratch();
        machine.lay_out(root.path(), Nodes::Recorded).unwrap();
        let answer = doctor_beneath(root.path()).1;
        assert_check(find(&answer, NAME, "containerd"), status, evidence, "");
        for command in ["detect", "plan", "doctor"] {
            let text = said(root.path(), command);
            let of_engine = text.split("rocworker does not configure").nth(1).unwrap();
            let of_engine = of_engine.split(" · ").next().unwrap();
            match &everywhere {
                Some(everywhere) => {
                    assert!(of_engine.contains(everywhere.as_str()), "{command}: {everywhere}: {text}")
                }
                None => assert!(!of_engine.contains("CDI"), "{command}: {text}"),
            }
        }
    }
}

#[test]
fn cdi_that_is_off_fails_once_a_plugin_gives_pods_cdi_names() {
    // The other answer has the device /dev/kfd.
    for (answer, status, evidence, remedy) in [
        (BY_CDI, "failed", "CDI is off, and pods are given their GPUs by CDI names", "update k3s"),
        ("GhoKCC9kZXYva2ZkEggvZGV2L2tmZBoCcnc=", "ok", "CDI is off; only", ""),
    ] {
        let held = json!([given(POD, &json!({"0": [ADDRESS]}), answer)]);
        let machine = node(good())
            .put(&format!("{K3S}/config.toml"), K3S_1_7)
            .put(CHECKPOINT, checkpoint(&json!({"amd.com/gpu": [ADDRESS]}), &held));
        assert_check(find(&doctor(&machine, &[]), NAME, "containerd"), status, evidence, remedy);
    }
}

/// What a command says beneath a directory, with single spaces.
fn said(root: &Path, command: &str) -> String {
    let output = Command::new(PROGRAM).arg("--root").arg(root).arg(command).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
