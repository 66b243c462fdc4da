//! The node's labels, set through an API server that a Python program stands in for: no API server can be built here.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use layout::Machine;
use serde_json::{Value, json};
use support::waiting::eventually;
use tempfile::TempDir;

use crate::lists::laid;
use crate::running::{PROGRAM, Running};

/// Killed when dropped.
struct ApiServer {
    child: Child,
    port: u16,
    place: TempDir,
}

impl ApiServer {
    /// A server whose node has these labels, with the folder of a service account.
    fn start(labels: &Value) -> Self {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str| place.path().join(name);
        let request = |name: &str, more: &[&str]| {
            let subject = format!("/CN={name}");
            let key = file(&format!("{name}.key"));
            let mut command = Command::new("openssl");
            command.args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ]);
            command.args(["-days", "1", "-subj", &subject, "-keyout"]).arg(key);
            let output = command.arg("-out").arg(file(&format!("{name}.crt"))).args(more).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        request("ca", &[]);
        let [ca, ca_key] =
            ["ca.crt", "ca.key"].map(|name| file(name).into_os_string().into_string().unwrap());
        let leaf =
            ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", "subjectAltName=IP:127.0.0.1"];
        request("server", &[&["-CA", &ca, "-CAkey", &ca_key], &leaf[..]].concat());
        fs::write(file("token"), "secret\n").unwrap();
        fs::write(file("labels"), labels.to_string()).unwrap();
        let mut command = Command::new("python3");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/api_server.py"));
        command.args([file("server.crt"), file("server.key"), "secret".into(), file("labels"), file("log")]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap(), place }
    }

    fn labels(&self) -> BTreeMap<String, String> {
        serde_json::from_str(&fs::read_to_string(self.place.path().join("labels")).unwrap())
            .unwrap_or_default()
    }

    /// What was asked: path, content type and patch.
    fn asked(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.place.path().join("log")).unwrap_or_default();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn plugin(&self, root: &Path, arguments: &[&str]) -> Running {
        let mut command = Command::new(PROGRAM);
        command
            .arg("--root")
            .arg(root)
            .args(["--label-node", "gpu-1", "--service-account"])
            .arg(self.place.path());
        command.args(arguments);
        command
            .env("KUBERNETES_SERVICE_HOST", "127.0.0.1")
            .env("KUBERNETES_SERVICE_PORT", self.port.to_string());
        Running::of(command)
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn the_node_gets_its_labels_loses_stale_ones_and_keeps_all_others() {
    let place = laid(&Machine::instinct(2, 1));
    let server = ApiServer::start(&json!({
        "kubernetes.io/hostname": "gpu-1",
        "amd.com/gpu.vram": "64G",
        "amd.com/gpu.vram.64G": "1",
        "beta.amd.com/gpu.family.NV": "1",
        "amd.com/rack": "7",
    }));
    let running = server.plugin(place.path(), &["--labels=vram,device-id"]);
    running.says("the node gpu-1 has 9 labels of its GPUs");
    let expected = [
        ("amd.com/gpu", "true"),
        ("amd.com/gpu.device-id", "74a1"),
        ("amd.com/gpu.vram", "192G"),
        ("amd.com/rack", "7"),
        ("amdgpu.com/gpu.present", "true"),
        ("beta.amd.com/gpu.device-id", "74a1"),
        ("beta.amd.com/gpu.device-id.74a1", "2"),
        ("beta.amd.com/gpu.vram", "192G"),
        ("beta.amd.com/gpu.vram.192G", "2"),
        ("gpu", "true"),
        ("kubernetes.io/hostname", "gpu-1"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    eventually("the labels are those of the GPUs", || server.labels() == expected);
    let asked = server.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked.iter().all(|it| it[0] == "/api/v1/nodes/gpu-1" && it[1] == "application/merge-patch+json"));
    assert_eq!(
        asked[1][2],
        json!({ "metadata": { "labels": { "amd.com/gpu.vram.64G": null, "beta.amd.com/gpu.family.NV": null } } })
    );
}

#[test]
fn an_api_server_that_refuses_is_quoted_and_so_is_what_a_pod_lacks() {
    let place = laid(&Machine::instinct(1, 1));
    let server = ApiServer::start(&Value::Null);
    let running = server.plugin(place.path(), &[]);
    running.says("the API server answers 403 Forbidden: nodes \"gpu-1\" is forbidden: not admitted");
    fs::write(server.place.path().join("token"), "other").unwrap();
    running.says("401 Unauthorized");
    drop(running);

    // Another server's certificate is not the cluster's.
    let other = ApiServer::start(&json!({}));
    fs::copy(other.place.path().join("ca.crt"), server.place.path().join("ca.crt")).unwrap();
    let running = server.plugin(place.path(), &[]);
    running.says("the node gpu-1 is not labelled: PATCH https://127.0.0.1:");
    assert!(running.said().contains("certificate"), "{}", running.said());
    drop(running);

    let outside = Running::start(place.path(), &["--label-node=gpu-1"]);
    outside.says("/var/run/secrets/kubernetes.io/serviceaccount");
}
