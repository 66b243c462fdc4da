//! Starts the kubelet, gives it pods, and asks it about them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::checkpoint::{self, Checkpoint};
use crate::daemon::{Daemon, Signal};
use crate::node::{KUBELET_DIR, Node, SOCKET};
use crate::pod::Pod;

/// The kubelet's name for the node, with which it ends static pods' names.
const NODE: &str = "node";
/// The port that answers without a certificate.
const PORT: u16 = 10255;
/// Other tests slow the kubelet down.
const PATIENCE: Duration = Duration::from_secs(60);
const GLANCE: Duration = Duration::from_millis(100);

/// The kubelet of a [`Node`].
#[derive(Debug)]
pub struct Kubelet<'a> {
    daemon: Daemon<'a>,
}

impl<'a> Kubelet<'a> {
    /// Starts it and waits until it answers.
    ///
    /// # Panics
    /// Where it does not start.
    #[track_caller]
    pub fn start(node: &'a Node) -> Self {
        fs::write(node.outside("kubelet.json"), configuration().to_string()).unwrap();
        let program = node.put_program(&node.programs().kubelet);
        let cgroup = format!("--cgroup-root=/{}", node.host().cgroup());
        let socket = format!("--container-runtime-endpoint=unix://{SOCKET}");
        let name = format!("--hostname-override={NODE}");
        let argv = [
            &program,
            "--config=/stage/kubelet.json",
            "--container-runtime=remote",
            &socket,
            &cgroup,
            &name,
            "--register-node=false",
            "--v=3",
        ];
        let daemon = Daemon::start(node, argv.map(str::to_owned).into());
        let mut kubelet = Self { daemon };
        kubelet.until_it_answers();
        kubelet
    }

    /// Ends it; its pods go on.
    ///
    /// # Panics
    /// Where it does not run.
    #[track_caller]
    pub fn stop(&mut self, signal: Signal) {
        self.daemon.stop(signal);
    }

    /// Starts it again and waits until it answers.
    ///
    /// # Panics
    /// Where it does not start.
    #[track_caller]
    pub fn start_again(&mut self) {
        self.daemon.start_again();
        self.until_it_answers();
    }

    #[track_caller]
    fn until_it_answers(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while self.ask("pods").is_none() {
            assert!(self.daemon.runs(), "the kubelet has ended:\n{}", self.log());
            assert!(Instant::now() < deadline, "the kubelet does not answer:\n{}", self.log());
            thread::sleep(GLANCE);
        }
    }

    /// What it has logged since its first start.
    pub fn log(&self) -> String {
        self.daemon.log()
    }

    /// Gives it a static pod.
    ///
    /// # Panics
    /// Where the file cannot be written.
    pub fn put(&self, pod: &Pod) {
        let file = self.manifest(&pod.name);
        // The kubelet skips hidden files.
        let unfinished = file.with_file_name(".unfinished");
        fs::write(&unfinished, pod.manifest().to_string()).unwrap();
        fs::rename(unfinished, file).unwrap();
    }

    /// Takes a static pod away, and waits until none of its processes runs.
    ///
    /// # Panics
    /// Where there is none, or it stays.
    #[track_caller]
    pub fn remove(&self, pod: &str) {
        fs::remove_file(self.manifest(pod)).unwrap();
        for suffix in ["", ".whole"] {
            let _ = fs::remove_file(self.seen_file(pod, suffix));
        }
        self.until(&format!("{pod} has gone"), || {
            (self.pod(pod).is_none() && self.running_containers_of(pod).is_empty()).then_some(())
        });
    }

    fn manifest(&self, pod: &str) -> PathBuf {
        self.daemon.node().outside("manifests").join(format!("{pod}.json"))
    }

    /// The ids in containerd of a pod's containers and its sandbox that run. The kubelet removes the others a minute later.
    ///
    /// # Panics
    /// Where containerd does not answer.
    pub fn running_containers_of(&self, pod: &str) -> BTreeSet<String> {
        let filter = format!("labels.\"io.kubernetes.pod.name\"=={pod}-{NODE}");
        let listed = self.daemon.node().ctr(&["containers", "list", "--quiet", &filter]).well();
        let tasks = self.daemon.node().ctr(&["tasks", "list"]).well();
        let runs = |id: &&str| {
            tasks.lines().any(|task| task.starts_with(&format!("{id} ")) && task.contains("RUNNING"))
        };
        listed.lines().filter(runs).map(str::to_owned).collect()
    }

    /// The pod as the kubelet publishes it, with its status; none where the kubelet does not know it.
    ///
    /// # Panics
    /// Where the kubelet's answer is no JSON.
    pub fn pod(&self, name: &str) -> Option<Value> {
        let list: Value = serde_json::from_str(&self.ask("pods")?).unwrap();
        let full = format!("{name}-{NODE}");
        list["items"].as_array()?.iter().find(|pod| pod["metadata"]["name"] == full.as_str()).cloned()
    }

    /// Waits until a pod runs.
    ///
    /// # Panics
    /// Where it does not.
    #[track_caller]
    pub fn running(&self, name: &str) -> Running {
        self.until(&format!("{name} runs"), || Running::of(&self.pod(name)?))
    }

    /// Waits until the kubelet refuses a pod, and gives the reason and the sentence.
    ///
    /// # Panics
    /// Where it does not.
    #[track_caller]
    pub fn refusal(&self, name: &str) -> (String, String) {
        self.until(&format!("{name} is refused"), || {
            let status = &self.pod(name)?["status"];
            let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
            (status["phase"] == "Failed").then(|| (text("reason"), text("message")))
        })
    }

    /// Waits until a pod has looked at its GPU nodes, and gives what it saw.
    ///
    /// # Panics
    /// Where it does not.
    #[track_caller]
    pub fn seen(&self, pod: &str) -> String {
        self.until(&format!("{pod} has looked"), || {
            let is_whole = self.seen_file(pod, ".whole").exists();
            is_whole.then(|| fs::read_to_string(self.seen_file(pod, "")).unwrap())
        })
    }

    fn seen_file(&self, pod: &str, suffix: &str) -> PathBuf {
        self.daemon.node().outside("seen").join(format!("{pod}{suffix}"))
    }

    /// How often plugins have registered this resource since the kubelet's last start.
    ///
    /// # Panics
    /// Where the kubelet does not answer.
    pub fn registrations(&self, resource: &str) -> u64 {
        let name = format!("kubelet_device_plugin_registration_total{{resource_name=\"{resource}\"}} ");
        let metrics = self.ask("metrics").unwrap();
        metrics.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse().unwrap())
    }

    /// The checkpoint; none where the kubelet has not written one.
    ///
    /// # Panics
    /// Where it is none.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let file = self.daemon.node().machine(KUBELET_DIR).join(checkpoint::FILE);
        fs::read_to_string(file).ok().map(|text| Checkpoint::of(&text))
    }

    /// Waits until so many healthy devices of a resource are registered, and gives the checkpoint.
    ///
    /// # Panics
    /// Where they are not.
    #[track_caller]
    pub fn registered(&self, resource: &str, count: usize) -> Checkpoint {
        self.until(&format!("{count} {resource} are registered"), || {
            self.checkpoint().filter(|it| it.registered.get(resource).is_some_and(|ids| ids.len() == count))
        })
    }

    /// Waits for what the kubelet does in its own time.
    ///
    /// # Panics
    /// Where it does not come, with the logs of the node's programs.
    #[track_caller]
    pub fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(Instant::now() < deadline, "not so that {what}\n{}", self.daemon.node().logs());
            thread::sleep(GLANCE);
        }
    }

    /// An answer of the read-only port; none where there is none.
    fn ask(&self, path: &str) -> Option<String> {
        let address = format!("http://127.0.0.1:{PORT}/{path}");
        let argv = ["/usr/bin/busybox", "wget", "-q", "-O", "-", &address];
        let output = self.daemon.node().command(&argv).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }
}

/// A pod whose container runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    pub uid: String,
    /// The container's id in CRI.
    pub container: String,
    pub restarts: u64,
}

impl Running {
    fn of(pod: &Value) -> Option<Self> {
        let container = &pod["status"]["containerStatuses"][0];
        container["state"].get("running")?;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Some(Self {
            uid: text(&pod["metadata"]["uid"]),
            container: text(&container["containerID"]),
            restarts: container["restartCount"].as_u64().unwrap(),
        })
    }
}

/// Everything that would change this machine, or judge the room on it, is off.
fn configuration() -> Value {
    let room = ["memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available"];
    let no_eviction: Value = room.map(|signal| (signal.to_owned(), json!("0%"))).into_iter().collect();
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "staticPodPath": "/stage/manifests",
        "fileCheckFrequency": "1s",
        "syncFrequency": "1s",
        "address": "127.0.0.1",
        "readOnlyPort": PORT,
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "enforceNodeAllocatable": [],
        "failSwapOn": false,
        "makeIPTablesUtilChains": false,
        "hairpinMode": "none",
        "resolvConf": "",
        "oomScoreAdj": 0,
        "evictionHard": no_eviction,
        "imageGCHighThresholdPercent": 100,
        // Its numbers come from files of /sys that a laid-out machine does not have.
        "featureGates": {"LocalStorageCapacityIsolation": false},
    })
}
