//! deploy/tensorfusion/test-amd-cluster.sh with the real kubectl, before a stand-in of the API server and of GreptimeDB.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use support::real;
use support::said::Said;

use super::{TOOLS, deployed, script};

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(tools: &Path, folder: &Path, objects: &Value) -> Self {
        let file = folder.join("objects.json");
        fs::write(&file, objects.to_string()).unwrap();
        let mut child = script(tools, "api_server.py").arg(file).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

const GPU: &str = "/apis/tensor-fusion.ai/v1/gpus/gpu-1b5c03c8f2ab0013";
const POOL: &str = "/apis/tensor-fusion.ai/v1/gpupools/amd-gpu-pool";

/// A node whose hypervisor has found a GPU.
fn objects() -> Value {
    let amount = json!({"tflops": "1307400m", "vram": "196592Mi"});
    json!({
        "/api/v1/nodes/n1": {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1"},
            "status": {"conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]},
        },
        "/api/v1/namespaces/tensor-fusion-sys/pods/hypervisor-n1": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "hypervisor-n1", "namespace": "tensor-fusion-sys"},
            "spec": {"nodeName": "n1"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        },
        POOL: {
            "apiVersion": "tensor-fusion.ai/v1",
            "kind": "GPUPool",
            "metadata": {"name": "amd-gpu-pool"},
            "status": {"phase": "Running", "totalGPUs": 1},
        },
        GPU: {
            "apiVersion": "tensor-fusion.ai/v1",
            "kind": "GPU",
            "metadata": {"name": "gpu-1b5c03c8f2ab0013"},
            "status": {
                "vendor": "AMD",
                "gpuModel": "AMD Instinct MI300X",
                "nodeSelector": {"kubernetes.io/hostname": "n1"},
                "capacity": amount,
                "available": amount,
            },
        },
    })
}

fn tested(tools: &Path, objects: &Value) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(tools, folder.path(), objects);
    symlink(tools.join("bin/kubectl"), folder.path().join("kubectl")).unwrap();
    let helm = folder.path().join("helm");
    fs::write(&helm, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&helm, fs::Permissions::from_mode(0o755)).unwrap();
    let configuration = folder.path().join("kubeconfig");
    let address = format!("http://127.0.0.1:{}", server.port);
    let written = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": {"server": address}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": ""}}],
        "current-context": "it",
    });
    fs::write(&configuration, written.to_string()).unwrap();
    let output = Command::new(deployed("test-amd-cluster.sh"))
        .args(["--wait", "2", "--request", "20", "n1"])
        .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()))
        .env("HOME", folder.path())
        .env("KUBECONFIG", configuration)
        .output();
    Said::from(output.unwrap())
}

#[test]
fn real_kubectl_reads_of_the_cluster_what_the_script_asks_for() {
    let Some([tools]) = real::require_made([TOOLS], &["timeout"]) else { return };
    let said = tested(&tools, &objects()).well();
    for line in [
        "node/n1 labeled",
        "providerconfig.tensor-fusion.ai/amd-provider created",
        "tensorfusioncluster.tensor-fusion.ai/amd created",
        "n1 AMD 1307400m 196592Mi gpu-1b5c03c8f2ab0013 AMD Instinct MI300X",
        "pod/amd-gpu-part created",
        "gpu-1b5c03c8f2ab0013: 180208Mi of 196592Mi available",
        "All 8 steps passed.",
    ] {
        assert!(said.lines().any(|other| other == line), "{line}: {said}");
    }
}

#[test]
fn real_kubectl_shows_the_script_what_is_missing() {
    let Some([tools]) = real::require_made([TOOLS], &["timeout"]) else { return };
    for (place, key, value, sentence) in [
        (POOL, "totalGPUs", json!(0), "step 5 failed: the pool's phase and number of GPUs are 'Running 0'"),
        (
            POOL,
            "phase",
            json!("Unknown"),
            "step 5 failed: the pool's phase and number of GPUs are 'Unknown 1'",
        ),
        (GPU, "vendor", json!("NVIDIA"), "step 5 failed: no GPU of n1 is AMD's"),
        (GPU, "capacity", json!({"tflops": "0", "vram": "1Mi"}), "no rate is known of gpu-1b5c03c8f2ab0013"),
    ] {
        let mut objects = objects();
        objects[place]["status"][key] = value;
        let refused = tested(&tools, &objects).badly();
        assert!(refused.contains(sentence), "{sentence}: {refused}");
    }
    let mut nodeless = objects();
    nodeless.as_object_mut().unwrap().remove("/api/v1/nodes/n1");
    let refused = tested(&tools, &nodeless).badly();
    assert!(refused.contains("step 1 failed: the node n1 cannot be read"), "{refused}");
}
