//! A worker's program with the tests' GPU, on a Unix socket.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hip_transport::Address;
use tempfile::TempDir;

use crate::client::Client;

pub struct Worker {
    pub child: Child,
    pub folder: TempDir,
    log: Arc<Mutex<String>>,
}

/// Waits until something is so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_rocworker-hip-worker"))
}

impl Worker {
    /// Starts a worker with these options, and the tests' GPU with these variables. The machine has no policy.
    pub fn start(options: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_in(Path::new("/nowhere"), options, environment)
    }

    /// Starts a worker that finds the container wrapper's policy and leases beneath a folder.
    pub fn start_in(root: &Path, options: &[&str], environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let mut command = program();
        command.arg("--root").arg(root);
        if !options.contains(&"--hip-library") {
            command.arg("--hip-library").arg(test_gpu::library());
        }
        let mut child = command
            .args(["--unix".into(), place("socket"), "--cache".into(), place("cache")])
            .arg("--metrics")
            .arg(place("counts"))
            .args(options)
            .envs(environment.iter().copied())
            .env("TEST_GPU_REPORT", place("report"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (own, errors) = (Arc::clone(&log), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines() {
                let line = line.unwrap_or_default();
                eprintln!("{line}");
                *own.lock().unwrap() += &(line + "\n");
            }
        });
        let worker = Self { child, folder, log };
        worker.logs("socket");
        worker
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub fn address(&self) -> Address {
        Address::parse(&format!("unix:{}", self.socket().display())).unwrap()
    }

    pub fn client(&self) -> Client {
        Client::greet(&self.address(), None)
    }

    /// Waits until the log has these words.
    pub fn logs(&self, words: &str) {
        eventually(&format!("the log has {words:?}"), || self.log.lock().unwrap().contains(words));
    }

    /// The address of the log's line "listens on 127.0.0.1:…".
    pub fn tcp(&self) -> String {
        self.logs("127.0.0.1:");
        let log = self.log.lock().unwrap();
        let at = log.find("127.0.0.1:").unwrap();
        log[at..].lines().next().unwrap().to_owned()
    }

    /// The processes of its clients.
    pub fn processes(&self) -> Vec<u32> {
        let path = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = std::fs::read_to_string(path).unwrap_or_default();
        children.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
