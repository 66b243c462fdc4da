//! A machine whose GPU has one holder at a time.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::Worker;

/// A policy of the container wrapper: whoever asks leases the one GPU, whatever the library finds.
pub const EXCLUSIVE: &str = r#"{"schema_version":2,"requests":"all","sharing":"exclusive","gpus":[
    {"index":0,"names":[],"card":"0000:64:00.0","nodes":[{"path":"/dev/dri/renderD128"}]}]}"#;

/// The leases and the records of clients in a /run.
pub fn leased(run: &Path) -> Vec<String> {
    let entries = ["leases", "records"].map(|name| fs::read_dir(run.join("rocworker").join(name)));
    let names = entries.into_iter().flatten().flatten().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| !name.starts_with('.')).collect()
}

#[derive(Debug)]
pub struct Machine {
    root: TempDir,
}

impl Machine {
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("hip-machine").tempdir().unwrap();
        fs::create_dir_all(root.path().join("etc/rocworker")).unwrap();
        fs::create_dir(root.path().join("run")).unwrap();
        fs::write(root.path().join("etc/rocworker/wrapper.json"), EXCLUSIVE).unwrap();
        Self { root }
    }

    pub fn worker(&self) -> Worker {
        Worker::with(["-p".as_ref(), "0".as_ref(), "--root".as_ref(), self.root.path().as_os_str()], [])
    }

    pub fn leased(&self) -> Vec<String> {
        leased(&self.root.path().join("run"))
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}
