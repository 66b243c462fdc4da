//! The folder that one engine's container lives from: an empty root file system, and a place for its answer.

use std::fs::{DirBuilder, remove_dir_all};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use root::Root;

use super::probe::Answer;

/// Folder of sandboxes, on a tmpfs: a boot removes what a killed canary left.
pub(super) const FOLDER: &str = "/run/rocworker";

/// The prefix of folders, containers and images, by which a later canary finds what a killed one left.
pub(crate) const PREFIX: &str = "rocworker-canary-";

/// An answer is one short line.
const LIMIT: usize = 64 << 10;

/// Path of rocworker's program in the container.
pub(super) const PROGRAM: &str = "/rocworker";
/// Path in the container at which the probe writes its answer.
pub(super) const ANSWER: &str = "/answer/answer.json";

/// A folder of this machine inside the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) writable: bool,
}

#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) folder: PathBuf,
    /// The name of containers and images that engines make for this sandbox: no earlier canary has had it.
    pub(crate) name: String,
    pub(crate) mounts: Vec<Mount>,
}

impl Sandbox {
    pub(super) fn build() -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
        let made = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(FOLDER)
            .map_err(|error| format!("making a folder in {FOLDER}: {error}"))?;
        let folder = made.path().to_owned();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut sandbox = Self { folder, name, mounts: Vec::new() };
        sandbox.fill(&program)?;
        // From here on an engine may mount something in it.
        sandbox.folder = made.keep();
        Ok(sandbox)
    }

    fn fill(&mut self, program: &Path) -> Result<(), String> {
        for folder in ["root", "answer"] {
            let folder = self.folder.join(folder);
            let made = DirBuilder::new().mode(0o755).create(&folder);
            made.map_err(|error| format!("making {}: {error}", folder.display()))?;
        }
        self.mount(program, PROGRAM, false)?;
        self.mount(&self.folder.join("answer"), "/answer", true)
    }

    /// Notes a mount. Engines take a mount as one word, in which some characters mean something.
    fn mount(&mut self, from: &Path, to: &str, writable: bool) -> Result<(), String> {
        let is_plain = |path: &&str| !path.contains([':', ',', '"', '=']) && !path.ends_with(" (deleted)");
        let from = from.to_str().filter(is_plain).ok_or_else(|| {
            format!(
                "{to} cannot be put into a container: its path has a character that engines read as their own"
            )
        })?;
        self.mounts.push(Mount { from: from.to_owned(), to: to.to_owned(), writable });
        Ok(())
    }

    pub(crate) fn rootfs(&self) -> PathBuf {
        self.folder.join("root")
    }

    pub(super) fn answer(&self, root: &Root) -> Result<Answer, String> {
        let text = root.read(self.folder.join("answer/answer.json"), LIMIT).map_err(|error| {
            if error.is_not_found() { "the container left no answer".to_owned() } else { error.to_string() }
        })?;
        serde_json::from_slice(&text).map_err(|error| format!("the container's answer is none: {error}"))
    }
}

pub(super) fn remove_stale(root: &Root) -> Result<(), String> {
    for name in root.list(FOLDER).map_err(|error| error.to_string())? {
        if name.to_string_lossy().starts_with(PREFIX) {
            remove(root, &Path::new(FOLDER).join(name))?;
        }
    }
    Ok(())
}

/// Removes a folder with all that engines made in it, unless something is mounted there: what would be removed then is
/// not rocworker's.
pub(super) fn remove(root: &Root, folder: &Path) -> Result<(), String> {
    let mounted = root.read_text("/proc/self/mounts", 16 << 20).map_err(|error| error.to_string())?;
    let is_below = |line: &str| line.split(' ').nth(1).is_some_and(|at| Path::new(at).starts_with(folder));
    if mounted.lines().any(is_below) {
        return Err(format!("{} is left: something is mounted there", folder.display()));
    }
    remove_dir_all(folder).map_err(|error| format!("removing {}: {error}", folder.display()))
}
