//! The containerd of k3s, RKE2 and MicroK8s: doctor says of it what `config dump` says, and the line that doctor prints
//! switches CDI on. The engines themselves are not here: files after theirs are, and Debian's containerd.

use std::fs;

use real_engines::engine::{CONTAINERD_1_6, CONTAINERD_1_7, CONTAINERD_2_1, Engine};
use real_engines::host::Host;
use serde_json::Value;

use super::effective::host;

const PATH: &str = "/usr/sbin:/usr/bin";

/// What k3s v1.30 makes for a plain node (pkg/agent/templates), with the plugins' tables that matter here.
const K3S: &str = r#"version = 2

[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/rancher/k3s/agent/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
  stream_server_port = "10010"
  enable_selinux = false
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
  disable_snapshot_annotations = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = true
"#;

/// An engine's containerd: a sign of the engine, its program, its file.
const OWN: [[&str; 4]; 3] = [
    [
        "k3s",
        "/usr/local/bin/k3s",
        "/var/lib/rancher/k3s/data/current/bin/containerd",
        "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    ],
    [
        "rke2",
        "/usr/local/bin/rke2",
        "/var/lib/rancher/rke2/bin/containerd",
        "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
    ],
    [
        "microk8s",
        "/snap/bin/microk8s",
        "/snap/microk8s/current/bin/containerd",
        "/var/snap/microk8s/current/args/containerd.toml",
    ],
];

fn put(host: &Host, path: &str, text: &str) {
    fs::write(host.folder().join("put"), text).unwrap();
    host.busybox(&["mkdir", "-p", path.rsplit_once('/').unwrap().0]).well();
    host.busybox(&["cp", "/stage/put", path]).well();
}

/// Status and evidence of doctor's check of the node's containerd.
#[track_caller]
fn check(host: &Host) -> (String, String) {
    let said = host.call(PATH, &["/stage/rocworker", "--output", "json", "doctor"]);
    let answer: Value =
        serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    let is_it = |check: &&Value| check["name"] == "kubernetes" && check["subject"] == "containerd";
    let check =
        answer["checks"].as_array().unwrap().iter().find(is_it).unwrap_or_else(|| panic!("{answer:#}"));
    let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("evidence"))
}

/// The text with the line that doctor's sentence names, below the table that it names.
#[track_caller]
fn with_line(text: &str, sentence: &str) -> String {
    let (_, line) = sentence.split_once("set ").unwrap();
    let (line, rest) = line.split_once(" below ").unwrap();
    let (table, _) = rest.split_once(" in /").unwrap();
    assert_eq!(text.lines().filter(|line| *line == table).count(), 1, "{table}");
    text.replace(&format!("{table}\n"), &format!("{table}\n  {line}\n"))
}

fn release(engine: &Engine) -> Option<()> {
    let host = host(engine)?;
    put(&host, "/var/lib/kubelet/config.yaml", "");
    for [name, sign, program, file] in OWN {
        let context = format!("{name} with {}", engine.name);
        put(&host, sign, "");
        put(&host, file, K3S);
        host.busybox(&["mkdir", "-p", program.rsplit_once('/').unwrap().0]).well();
        host.busybox(&["ln", "-s", "/usr/bin/containerd", program]).well();
        let (status, evidence) = check(&host);
        assert_eq!(status, "ok", "{context}: {evidence}");
        if *engine == CONTAINERD_1_7 {
            assert!(evidence.starts_with("CDI is off"), "{context}: {evidence}");
            put(&host, file, &with_line(K3S, &evidence));
            assert_eq!(check(&host).1, "CDI is on, and reads /etc/cdi", "{context}");
        } else if *engine == CONTAINERD_1_6 {
            assert!(evidence.starts_with("this containerd is older than 1.7"), "{context}: {evidence}");
        } else {
            assert_eq!(evidence, "CDI is on, and reads /etc/cdi", "{context}");
            let table = "[plugins.\"io.containerd.grpc.v1.cri\"]\n";
            put(&host, file, &K3S.replace(table, &format!("{table}  enable_cdi = false\n")));
            assert!(check(&host).1.starts_with("CDI is off"), "{context}");
        }
        // What a template on top of "base" would make: no containerd takes it.
        let twice = format!("{K3S}\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  enable_cdi = true\n");
        put(&host, file, &twice);
        let dump = host.call(PATH, &[program, "--config", file, "config", "dump"]);
        let refused = ["duplicated tables", "already exists"].iter().any(|why| dump.stderr.contains(why));
        assert!(refused, "{context}: {dump:?}");
        host.busybox(&["rm", sign]).well();
        host.busybox(&["rm", "-r", "/var/lib/rancher", "/var/snap", "/snap"]);
    }
    Some(())
}

#[test]
fn real_the_line_that_doctor_prints_switches_cdi_on_in_a_containerd_that_a_distribution_brings() {
    for engine in [CONTAINERD_1_6, CONTAINERD_1_7, CONTAINERD_2_1] {
        if release(&engine).is_none() {
            return;
        }
    }
}

/// A pod's container that a device plugin gave the CDI device amd.com/gpu=0.
const GIVEN: &str = r#"{"Data": {"PodDeviceEntries": [{"PodUID": "1", "ContainerName": "c", "ResourceName": "amd.com/gpu",
    "DeviceIDs": {"0": []}, "AllocResp": "Kg8KDWFtZC5jb20vZ3B1PTA="}], "RegisteredDevices": {}}, "Checksum": 1}"#;

#[test]
fn real_the_systems_containerd_is_asked_for_cdi_where_rocworker_does_not_configure_it() {
    for engine in [CONTAINERD_1_7, CONTAINERD_2_1] {
        let Some(host) = host(&engine) else { return };
        put(&host, "/etc/rocworker/config.yaml", "containerd: {configure: never}\n");
        put(&host, "/etc/containerd/config.toml", "version = 2\n");
        put(&host, "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", GIVEN);
        let (status, evidence) = check(&host);
        if engine == CONTAINERD_1_7 {
            assert_eq!(status, "failed", "{evidence}");
            assert!(evidence.starts_with("containerd reads no CDI specs from /etc/cdi"), "{evidence}");
            let on = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nenable_cdi = true\n";
            put(&host, "/etc/containerd/config.toml", on);
        }
        assert_eq!(
            check(&host),
            ("ok".to_owned(), "CDI is on, and reads /etc/cdi".to_owned()),
            "{}",
            engine.name
        );
    }
}
