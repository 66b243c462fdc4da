//! Keeps the feature file from which NFD, where a node runs it, takes the labels of the GPUs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use config::Kubernetes;
use host::timestamp::Timestamp;
use inventory::labels::feature_file;
use root::Root;

use super::publisher::{File, Publisher};

/// NFD's worker reads every file in this folder that is no dot file.
pub const PATH: &str = "/etc/kubernetes/node-feature-discovery/features.d/rocworker";

/// The file's first line, by which rocworker knows its own.
pub const HEADER: &str = "# Written by rocworker's daemon: docs/kubernetes.md\n";

static FILE: File = File {
    path: PATH,
    every: Duration::from_secs(600),
    thread: "features",
    lack: "NFD does not label the node by its GPUs",
    is_own,
};

/// For how long NFD believes the file: a daemon that has gone leaves no labels for ever.
const LASTS: Duration = Duration::from_secs(3600);

/// What the file follows: each look of the daemon's, by its number, and the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Followed {
    pub looks: u64,
    pub config: Kubernetes,
}

pub fn publisher(root: Arc<Root>) -> std::io::Result<Publisher<Followed>> {
    Publisher::start(root, &FILE, |root, followed: Followed| {
        if !Path::new(PATH).parent().is_some_and(|folder| root.exists(folder)) {
            return None;
        }
        root.ask_again();
        // While a GPU cannot be read, the file stays as it is until it expires.
        let labels = amdgpu::labels(root, &followed.config.labels).ok()?;
        let expires = Timestamp::of(SystemTime::now() + LASTS).to_string();
        Some(HEADER.to_owned() + &feature_file(&labels, Some(&expires)))
    })
}

fn is_own(root: &Root) -> bool {
    root.read_start(PATH, HEADER.len()).is_ok_and(|start| start == HEADER.as_bytes())
}

/// Removes the file of a daemon that has gone; another program's stays.
///
/// # Errors
/// The file cannot be removed.
pub fn remove(root: &Root) -> Result<(), root::Error> {
    if is_own(root) { root.remove(PATH).map(drop) } else { Ok(()) }
}
