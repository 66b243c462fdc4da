//! The folder that one engine's container lives from: an almost empty root file system, and a place for its answer.

use std::fs::{DirBuilder, remove_dir_all};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use root::{Kind, Root};

use super::answer::Answer;
use super::names::PREFIX;

/// Nothing that outlives the machine's run.
pub(crate) const FOLDER: &str = "/run/rocworker";

/// An answer is one short line.
const LIMIT: usize = 64 << 10;

/// What programs are started with: the folders of a file system whose /usr holds everything, or those themselves.
const BESIDE_USR: [&str; 5] = ["bin", "lib", "lib32", "lib64", "sbin"];

/// Where the program stands inside.
pub(crate) const PROGRAM: &str = "/rocworker";
/// Where it puts its answer.
pub(crate) const ANSWER: &str = "/answer/answer.json";

/// A folder of this machine inside the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) writable: bool,
}

/// The folder, as long as this value lives.
#[derive(Debug)]
pub(crate) struct Nest<'a> {
    folder: PathBuf,
    name: String,
    mounts: Vec<Mount>,
    is_there: bool,
    root: &'a Root,
}

impl<'a> Nest<'a> {
    /// Makes it.
    pub(crate) fn build(root: &'a Root) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
        let made = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(FOLDER)
            .map_err(|error| format!("making a folder in {FOLDER}: {error}"))?;
        let folder = made.keep();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut nest = Self { folder, name, mounts: Vec::new(), is_there: true, root };
        nest.furnish(&program)?;
        Ok(nest)
    }

    fn furnish(&mut self, program: &Path) -> Result<(), String> {
        for folder in ["root", "answer"] {
            let folder = self.folder.join(folder);
            DirBuilder::new()
                .mode(0o755)
                .create(&folder)
                .map_err(|error| format!("making {}: {error}", folder.display()))?;
        }
        self.mount(Path::new("/usr"), "/usr", false)?;
        for name in BESIDE_USR {
            let path = Path::new("/").join(name);
            match self.root.lstat(&path).map(|meta| meta.kind) {
                Ok(Kind::Link) => {
                    let target = self.root.read_link(&path).map_err(|error| error.to_string())?;
                    let link = self.rootfs().join(name);
                    self.root.write_link(link, &target).map_err(|error| error.to_string())?;
                }
                Ok(Kind::Directory) => self.mount(&path, &format!("/{name}"), false)?,
                _ => {}
            }
        }
        self.mount(program, PROGRAM, false)?;
        self.mount(&self.folder.join("answer"), "/answer", true)
    }

    /// Notes a mount. Engines take them as one word, in which some characters mean something.
    fn mount(&mut self, from: &Path, to: &str, writable: bool) -> Result<(), String> {
        if !self.root.exists(from) {
            return Ok(());
        }
        let from = from
            .to_str()
            .filter(|path| !path.contains([':', ',', '"', '=']) && !path.ends_with(" (deleted)"));
        let from = from.ok_or_else(|| {
            format!(
                "{to} cannot be put into a container: its path has a character that engines read as their own"
            )
        })?;
        self.mounts.push(Mount { from: from.to_owned(), to: to.to_owned(), writable });
        Ok(())
    }

    /// A name for what engines make for it: no earlier canary has had it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn rootfs(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// A file beside the root file system.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// Takes what a container answered; none is left for the next one.
    pub(crate) fn answer(&self) -> Result<Answer, String> {
        let file = self.folder.join("answer/answer.json");
        let text = self.root.read(&file, LIMIT).map_err(|error| {
            if error.is_not_found() { "the container left no answer".to_owned() } else { error.to_string() }
        })?;
        self.root.remove(&file).map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|error| format!("the container's answer is none: {error}"))
    }

    /// Removes it.
    pub(crate) fn remove(mut self) -> Result<(), String> {
        self.clear()
    }

    fn clear(&mut self) -> Result<(), String> {
        if std::mem::take(&mut self.is_there) { remove(self.root, &self.folder) } else { Ok(()) }
    }
}

impl Drop for Nest<'_> {
    fn drop(&mut self) {
        // It was not told to go, so that somebody is told of another reason already.
        self.clear().ok();
    }
}

/// Removes a nest with all that engines made in it, unless something is mounted there: what would be removed then is
/// not ours.
pub(crate) fn remove(root: &Root, folder: &Path) -> Result<(), String> {
    let mounted = root.read_text("/proc/self/mounts", 16 << 20).map_err(|error| error.to_string())?;
    let is_below = |line: &str| line.split(' ').nth(1).is_some_and(|at| Path::new(at).starts_with(folder));
    if mounted.lines().any(is_below) {
        return Err(format!("{} is left: something is mounted there", folder.display()));
    }
    remove_dir_all(folder).map_err(|error| format!("removing {}: {error}", folder.display()))
}
