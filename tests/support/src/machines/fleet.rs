//! The machine that asks.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::group;
use crate::said::Said;
use crate::stage::{SHARED, build};

const ASKER: &str = include_str!("asker.sh");

/// The machine that asks, as root of which a test runs ssh and rocworker, and the others that it can ask.
#[derive(Debug)]
pub struct Fleet {
    process: Child,
    /// The asker's standard input: all machines end when it closes.
    stdin: Option<ChildStdin>,
    /// The pid of the asker's process 1, as this host counts.
    pid: String,
    machines: AtomicU16,
    /// Processes that have each started a machine, and end with it.
    starters: Mutex<Vec<Child>>,
    /// Control groups of machines with systemd, which go once all have ended. Those of a killed test stay, empty.
    groups: Mutex<Vec<String>>,
}

impl Fleet {
    /// The asker alone: /root/.ssh holds its key, and known_hosts without a host. /etc has no configuration of rocworker's.
    ///
    /// # Panics
    /// Where namespaces cannot be made.
    #[expect(clippy::new_without_default, reason = "it starts processes")]
    pub fn new() -> Self {
        let mut process = Command::new("unshare")
            .args(["--mount", "--net", "--uts", "--ipc", "--pid", "--fork"])
            .args(["--propagation", "private", "sh", "-c", ASKER, "asker"])
            .arg(build())
            .arg(SHARED)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = process.stdin.take();
        let pid = first_line(&mut process);
        Self {
            process,
            stdin,
            pid,
            machines: AtomicU16::new(0),
            starters: Mutex::default(),
            groups: Mutex::default(),
        }
    }

    /// What runs a program on the asker as root.
    pub fn command(&self, argv: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &self.pid, "--mount", "--net", "--uts", "--ipc", "--pid", "--wdns=/", "--"]);
        command.args(argv).env("HOME", "/root");
        command
    }

    /// Runs a program on the asker.
    ///
    /// # Panics
    /// Where there is no nsenter(1).
    pub fn run(&self, argv: &[&str]) -> Said {
        self.command(argv).stdin(Stdio::null()).output().unwrap().into()
    }

    /// Runs a shell's script on the asker.
    ///
    /// # Panics
    /// Where [`Fleet::run`] panics.
    pub fn shell(&self, script: &str) -> Said {
        self.run(&["sh", "-ec", script])
    }

    /// The path of an asker's file for the test.
    pub fn path(&self, path: &str) -> PathBuf {
        Path::new("/proc").join(&self.pid).join("root").join(path.trim_start_matches('/'))
    }

    /// Writes a file of the asker's, with the folders that it needs.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Adds a line to a file of the asker's.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn append(&self, path: &str, line: &str) {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(self.path(path)).unwrap();
        // A single write, because several machines may start at once.
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Closes the pipe, as the death of a test does.
    #[cfg(test)]
    pub(super) fn forsake(&mut self) {
        drop(self.stdin.take());
    }

    /// The pid of the asker's process 1, as this host counts.
    pub(super) fn pid(&self) -> &str {
        &self.pid
    }

    /// A number that no other machine has.
    pub(super) fn next_number(&self) -> u16 {
        self.machines.fetch_add(1, Ordering::Relaxed)
    }

    /// Removes this control group at the end.
    pub(super) fn clean_up(&self, group: String) {
        self.groups.lock().unwrap().push(group);
    }

    /// Lets a machine's starter end with the fleet.
    pub(super) fn hold(&self, starter: Child) {
        self.starters.lock().unwrap().push(starter);
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        drop(self.stdin.take());
        self.process.wait().ok();
        for mut starter in self.starters.lock().map(|mut it| std::mem::take(&mut *it)).unwrap_or_default() {
            starter.wait().ok();
        }
        for group in self.groups.lock().map(|mut it| std::mem::take(&mut *it)).unwrap_or_default() {
            group::remove(&group);
        }
    }
}

/// The line by which a process says that it is ready: its number.
pub(super) fn first_line(process: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line.is_empty() {
        panic!("it ended before it was ready: {}", process.wait().unwrap());
    }
    line.trim().to_owned()
}
