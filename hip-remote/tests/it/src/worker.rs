//! A worker on this machine, with the tests' GPU.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::{EVENTUALLY, built, children, until};

#[derive(Debug)]
pub struct Worker {
    process: Child,
    pub folder: TempDir,
}

impl Worker {
    /// A worker that listens on a Unix socket and on a port of loopback.
    pub fn start() -> Self {
        Self::with(["-p", "0"], [])
    }

    pub fn with<'a>(
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        environment: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        Self::by(&[] as &[&str], arguments, environment)
    }

    /// A worker that another command becomes, such as `ip netns exec NAME`.
    pub fn by<'a>(
        starter: &[impl AsRef<OsStr>],
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        environment: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let folder = tempfile::Builder::new().prefix("hip-worker").tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(starter);
        command.arg(built().join("bin/rocworker-hip-worker"));
        command
            .arg("--unix")
            .arg(path("hip.sock"))
            .arg("--cache")
            .arg(path("cache"))
            .arg("--metrics")
            .arg(path("counts"));
        let arguments: Vec<_> = arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        let has = |name: &str| arguments.iter().any(|argument| argument == name);
        if !has("--hip-library") {
            command.arg("--hip-library").arg(test_gpu::built::library());
        }
        if !has("--root") {
            // No policy of this machine's container wrapper counts.
            command.arg("--root").arg(folder.path());
        }
        command.args(arguments).envs(environment).env("TEST_GPU_REPORT", path("report"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(path("log")).unwrap());
        let process = command.spawn().unwrap();
        let mut worker = Self { process, folder };
        until("the worker listens", EVENTUALLY, || {
            let ended = worker.process.try_wait().unwrap();
            assert!(ended.is_none(), "the worker ended: {}", worker.log());
            worker.log().contains("hip.sock\n")
        });
        worker
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub fn unix(&self) -> String {
        format!("unix:{}", self.path("hip.sock").display())
    }

    /// The address of its first TCP listener.
    pub fn tcp(&self) -> String {
        let log = self.log();
        let mut listeners =
            log.lines().filter_map(|line| line.split_once("listens on ")).map(|(_, address)| address);
        listeners
            .find(|address| !address.starts_with("unix:") && !address.starts_with('/'))
            .unwrap()
            .to_owned()
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The processes of its clients.
    pub fn clients(&self) -> Vec<u32> {
        children(self.pid())
    }

    /// Waits until no client has a process, and says how long that took.
    #[track_caller]
    pub fn until_free(&self, time: Duration) -> Duration {
        until("no client has a process", time, || self.clients().is_empty())
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// SIGTERM.
    pub fn end(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        until("the worker ends", EVENTUALLY, || self.process.try_wait().unwrap().is_some());
    }

    /// A key of this worker's own folder; the worker must be started with it.
    pub fn make_key(folder: &Path) {
        let made =
            Command::new(built().join("bin/rocworker-hip-worker")).arg("key").arg(folder).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("the worker's log:\n{}", self.log());
        }
    }
}
