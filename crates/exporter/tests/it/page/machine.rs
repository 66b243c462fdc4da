//! A laid-out machine at work, with what its daemon publishes. **Readings, processes and judgements are invented.**

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use amdgpu::processes::gpu_id;
use layout::{Machine, Nodes};
use root::Root;
use serde_json::json;
use tempfile::TempDir;

const CONTAINER: &str = "605439acbd4fb18c145069289094b17f17e0cfa938f78012d4960bc797305f22";

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Four Instincts in eight partitions each: one hangs, one is degraded, of one nothing is known.
pub(super) fn busy() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    Machine::instinct_in_trouble(4, 8).lay_out(folder.path(), Nodes::Recorded).unwrap();
    let top = folder.path();
    put(top, "etc/hostname", "worker-1\n");
    put(top, "proc/uptime", "86400.00 99999.00\n");
    let docker = format!("0::/system.slice/docker-{CONTAINER}.scope\n");
    for (pid, name, cgroup, gpu, gib) in [
        (4711, "python3", docker.as_str(), 8, 19),
        (4712, "python3", &docker, 9, 21),
        (5120, "vllm", "0::/system.slice/inference.service\n", 24, 11),
        (6001, "<script>x</scrip", "0::/user.slice/user-1000.slice/session-3.scope\n", 25, 1),
    ] {
        process(top, pid, name, cgroup, gpu, gib << 30);
    }
    publish(top);
    folder
}

pub(super) fn put(top: &Path, path: &str, text: &str) {
    let path = top.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A process that uses the GPU with this index.
pub(super) fn process(top: &Path, pid: u32, name: &str, cgroup: &str, gpu: u32, vram: u64) {
    let root = Root::open(top).unwrap();
    let machine = amdgpu::read(&root);
    let gpu = machine.gpus.iter().find(|known| known.index == Some(gpu)).unwrap();
    let id = gpu_id(&root, gpu.kfd_node.unwrap(), &mut Vec::new()).unwrap();
    put(top, &format!("proc/{pid}/comm"), &format!("{name}\n"));
    put(top, &format!("proc/{pid}/cgroup"), cgroup);
    put(top, &format!("proc/{pid}/stat"), &format!("{pid} (a) R {}1000 0\n", "0 ".repeat(18)));
    put(top, &format!("sys/class/kfd/kfd/proc/{pid}/vram_{id}"), &format!("{vram}\n"));
    fs::create_dir_all(top.join(format!("sys/class/kfd/kfd/proc/{pid}/queues"))).unwrap();
}

/// Writes the files of a running daemon.
pub(super) fn publish(top: &Path) {
    let now = now();
    let pci = |number: usize| {
        let machine = amdgpu::read(&Root::open(top).unwrap());
        let mut cards: Vec<String> =
            machine.gpus.iter().filter_map(|gpu| gpu.pci.map(|pci| pci.to_string())).collect();
        cards.dedup();
        cards[number].clone()
    };
    let gpu = |number: usize, state: &str, score: Option<u8>, deductions: serde_json::Value| {
        json!({"pci": pci(number), "state": state, "score": score, "hang": score.map(|score| score < 50),
            "deductions": deductions, "unknown": [], "quarantine": null, "leftover": null})
    };
    let deduction = |rule: &str, points: u8, reason: &str, evidence: &str| json!([{"rule": rule, "points": points, "reason": reason, "evidence": evidence}]);
    let hang = "The GPU does not finish its work, and resets have failed.";
    let line = "amdgpu 0000:05:00.0: amdgpu: ring comp_1.0.0 timeout";
    let mut hung = gpu(0, "unhealthy", Some(10), deduction("hang", 90, hang, line));
    hung["quarantine"] = json!({"since": now - 5400, "unhealthy_at": now, "reason": hang, "rules": ["hang"]});
    let hot = "The firmware limits the clocks because of the temperature.";
    let degraded = gpu(1, "degraded", Some(85), deduction("thermal", 15, hot, "rocm_gpu_throttle_status 1"));
    let mut unread = gpu(2, "unknown", None, json!([]));
    unread["unknown"] = json!(["Its counters of RAS cannot be read."]);
    let health = json!({"schema_version": 1, "written_at": now, "unknown": [],
        "gpus": [hung, degraded, unread, gpu(3, "healthy", Some(100), json!([]))]});
    replace(top, "run/rocworker/health.json", &health.to_string());
    let published = json!({"schema_version": 1, "written_at": now, "config_in_force": true, "problems": 0,
        "leases": [{"gpu": "renderD144", "container": CONTAINER}, {"gpu": "renderD145", "container": CONTAINER}],
        "drift": {"differs": 1, "contested": 1, "blocked": 0, "failed": 0, "pending_restarts": 1},
        "drifting": [
            {"path": "/etc/docker/daemon.json", "state": "contested",
                "reason": "Another program keeps changing it, so rocworker leaves it alone."},
            {"path": "package:amdgpu-dkms", "state": "differs", "reason": "Only rocworker apply changes it."},
        ],
        "changes": [
            {"at": now - 600, "command": "serve", "text": "Repaired /etc/cdi/amd.json."},
            {"at": now - 86_400, "command": "apply", "text": "Created /etc/cdi/amd.json, edited \
                /etc/containerd/config.toml, created /etc/udev/rules.d/70-rocworker.rules, and 4 more."},
        ],
        "pods": [], "clients": []});
    replace(top, "run/rocworker/exporter.json", &published.to_string());
}

/// Whole, as a daemon does.
fn replace(top: &Path, path: &str, text: &str) {
    let new = format!("{path}.new");
    put(top, &new, text);
    fs::rename(top.join(new), top.join(path)).unwrap();
}
