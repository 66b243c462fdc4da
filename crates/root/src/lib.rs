//! Files beneath a directory: read, list, stat, and with the feature `write` whole, atomic writes. Runs no command.
//!
//! Every path that rocworker touches is beneath a [`Root`]. So reading this machine's `/sys`, writing
//! its `/etc`, and running as a test on a captured machine are the same code. A symbolic link is resolved
//! inside the Root, an absolute one too: a hostile capture cannot point at the machine that reads it.

#[cfg(feature = "write")]
mod change;
mod error;
#[cfg(feature = "write")]
mod flags;
mod folder;
mod links;
#[cfg(feature = "write")]
mod lock;
mod meta;
#[cfg(feature = "write")]
mod node;
mod open;
pub mod patient;
mod place;
mod reader;
mod reads;
mod recorded;
mod reopen;
#[cfg(feature = "write")]
mod replace;
#[cfg(feature = "write")]
mod slot;
pub mod stuck;
#[cfg(feature = "write")]
mod tree;
mod trust;
#[cfg(feature = "write")]
mod value;
mod watch;
#[cfg(feature = "write")]
mod write;
#[cfg(feature = "write")]
mod xattr;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat};
use nix::sys::stat::{self, Mode};

pub use error::{Error, if_there};
#[cfg(feature = "write")]
pub use lock::Lock;
pub use meta::{Identity, Kind, Meta};
pub use reader::{Amount, Failure, Reader};
pub use reads::Kept;
pub use recorded::{CAPTURE_FILE, RecordedNode, Recording};
pub use reopen::Place;
#[cfg(feature = "write")]
pub use slot::{Attributes, New};
pub use stuck::Stuck;
pub use watch::Watch;
#[cfg(feature = "write")]
pub use write::Written;

use open::read_up_to;
use reads::Reads;

/// The directory that everything is beneath: `/`, or a machine laid out somewhere else.
pub struct Root {
    dir: OwnedFd,
    is_host: bool,
    path: PathBuf,
    /// Device nodes by path; none on the running machine.
    recorded: BTreeMap<PathBuf, Meta>,
    taken_at: Option<u64>,
    owner: u32,
    #[cfg(feature = "write")]
    on_change: Option<change::OnChange>,
    watch: Option<Arc<dyn Watch>>,
    reader: Option<Arc<dyn Reader>>,
    reads: Option<Reads>,
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Root").field(&self.path).finish()
    }
}

impl Root {
    /// Opens a Root. Beneath another directory than `/`, device nodes that [`CAPTURE_FILE`] records count
    /// as being there: an ordinary user cannot make them, and an archive should not carry them.
    ///
    /// # Errors
    /// When the directory cannot be opened, or its record of nodes cannot be read. When the kernel
    /// has no openat2(2) (Linux 5.6), without which links could not be kept inside.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |errno| Error::io("open", path.to_owned(), errno);
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let dir = openat(AT_FDCWD, path, flags, Mode::empty()).map_err(failed)?;
        let owner = stat::fstat(&dir).map_err(failed)?.st_uid;
        let mut root = Self {
            dir,
            is_host: path.is_absolute() && path.components().count() == 1,
            path: path.to_owned(),
            recorded: BTreeMap::new(),
            taken_at: None,
            owner,
            #[cfg(feature = "write")]
            on_change: None,
            watch: None,
            reader: None,
            reads: None,
        };
        if !root.is_host {
            root.open_at(Path::new("/"), OFlag::O_PATH).map_err(|errno| match errno {
                Errno::ENOSYS | Errno::EPERM => Error::Capture {
                    path: root.path.clone(),
                    problem: format!(
                        "reading beneath a directory needs openat2(2), and this kernel or its seccomp profile \
                         answers {errno}: use Linux 5.6 or later, or a container without that filter"
                    ),
                },
                other => failed(other),
            })?;
            (root.recorded, root.taken_at) = recorded::load(&root)?;
        }
        Ok(root)
    }

    /// Whether this is the running machine, `/`. With any other Root nothing outside that Root may happen.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.is_host
    }

    /// The uid whose files are believed beside root's own: that of the directory's owner.
    #[must_use]
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// The path as a person at a shell would name it: the Root's own path in front.
    #[must_use]
    pub fn shown(&self, path: impl AsRef<Path>) -> PathBuf {
        if self.is_host() { path.as_ref().to_owned() } else { self.path.join(inside(path.as_ref())) }
    }

    /// Reads a whole file of at most `limit` bytes.
    ///
    /// # Errors
    /// When the file is not there, not readable, or larger than `limit`.
    pub fn read(&self, path: impl AsRef<Path>, limit: usize) -> Result<Vec<u8>, Error> {
        let path = path.as_ref();
        let read = self.read_whole(path, limit);
        self.keep_read(path, &read);
        read
    }

    fn read_whole(&self, path: &Path, limit: usize) -> Result<Vec<u8>, Error> {
        if let Some(read) = self.read_by_reader(path, Amount::Whole(limit)) {
            return read;
        }
        let _reading = self.reading(path)?;
        // O_NONBLOCK: a fifo planted in a capture must not hang the reader.
        let file = self.open_file("open", path, OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?;
        read_up_to(&file, limit, || self.shown(path))
    }

    /// The first `count` bytes of a file, or all of a shorter one, by one read: for attributes of sysfs, which give all they
    /// have to the first read, and for files that the kernel makes longer with every CPU.
    ///
    /// # Errors
    /// When the file is not there or not readable.
    pub fn read_start(&self, path: impl AsRef<Path>, count: usize) -> Result<Vec<u8>, Error> {
        let path = path.as_ref();
        let read = self.read_once(path, count);
        self.keep_read(path, &read);
        read
    }

    fn read_once(&self, path: &Path, count: usize) -> Result<Vec<u8>, Error> {
        if let Some(read) = self.read_by_reader(path, Amount::Start(count)) {
            return read;
        }
        let _reading = self.reading(path)?;
        let file = self.open_file("open", path, OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?;
        let mut bytes = vec![0; count];
        loop {
            match nix::unistd::read(&file, &mut bytes) {
                Ok(read) => {
                    bytes.truncate(read);
                    return Ok(bytes);
                }
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(Error::io("read", self.shown(path), errno)),
            }
        }
    }

    /// Reads as [`Root::read`] does, as UTF-8.
    ///
    /// # Errors
    /// Fails where [`Root::read`] fails, and where the file holds something other than text.
    pub fn read_text(&self, path: impl AsRef<Path>, limit: usize) -> Result<String, Error> {
        let path = path.as_ref();
        String::from_utf8(self.read(path, limit)?).map_err(|_| Error::NotText { path: self.shown(path) })
    }

    /// The names in a directory, in byte order, recorded device nodes among them.
    ///
    /// # Errors
    /// When the directory is not there, is of another kind, or is not readable.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Vec<OsString>, Error> {
        let path = path.as_ref();
        let _reading = self.reading(path)?;
        let failed = |errno| Error::io("list", self.shown(path), errno);
        let mut names: Vec<OsString> = Vec::new();
        let recorded = self.recorded.keys().filter(|node| node.parent() == Some(path));
        let recorded: Vec<OsString> =
            recorded.filter_map(|node| node.file_name().map(OsStr::to_owned)).collect();
        match self.open_file("list", path, OFlag::O_RDONLY | OFlag::O_DIRECTORY) {
            Ok(folder) => {
                for entry in Dir::from_fd(folder).map_err(failed)?.iter() {
                    let name = entry.map_err(failed)?.file_name().to_bytes().to_vec();
                    if name != b"." && name != b".." {
                        names.push(OsString::from_vec(name));
                    }
                }
            }
            Err(error) if error.is_not_found() && !recorded.is_empty() => {}
            Err(error) => return Err(error),
        }
        names.extend(recorded);
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// The metadata of a path, with links followed.
    ///
    /// # Errors
    /// When nothing is there, or a folder on the way may not be entered.
    pub fn stat(&self, path: impl AsRef<Path>) -> Result<Meta, Error> {
        self.meta(path.as_ref(), OFlag::empty())
    }

    /// The metadata of a path; a link at its end is not followed.
    ///
    /// # Errors
    /// Fails where [`Root::stat`] fails.
    pub fn lstat(&self, path: impl AsRef<Path>) -> Result<Meta, Error> {
        self.meta(path.as_ref(), OFlag::O_NOFOLLOW)
    }

    /// The identity of the file at a path, with links followed.
    ///
    /// # Errors
    /// Fails where [`Root::stat`] fails.
    pub fn identity(&self, path: impl AsRef<Path>) -> Result<Identity, Error> {
        let path = path.as_ref();
        let _reading = self.reading(path)?;
        let file = self.open_file("stat", path, OFlag::O_PATH)?;
        let stat = stat::fstat(&file).map_err(|errno| Error::io("stat", self.shown(path), errno))?;
        Ok(Identity::from_stat(&stat))
    }

    /// A link's target as it is written.
    ///
    /// # Errors
    /// When nothing is there, or something other than a link.
    pub fn read_link(&self, path: impl AsRef<Path>) -> Result<PathBuf, Error> {
        let path = path.as_ref();
        let _reading = self.reading(path)?;
        let target = if self.is_host() {
            nix::fcntl::readlink(path)
        } else {
            let link = self.open_file("open", path, OFlag::O_PATH | OFlag::O_NOFOLLOW)?;
            nix::fcntl::readlinkat(&link, "")
        };
        // The kernel says ENOENT of an open descriptor that is not a link, and EINVAL of a path.
        target.map(PathBuf::from).map_err(|errno| Error::io("read the link", self.shown(path), errno))
    }

    /// When this machine was captured, in seconds since 1970; `None` where it runs, or its [`CAPTURE_FILE`] does not say.
    #[must_use]
    pub fn taken_at(&self) -> Option<u64> {
        self.taken_at
    }

    /// Whether a capture records the path as a device node, and the node itself is missing.
    #[must_use]
    pub fn is_recorded(&self, path: impl AsRef<Path>) -> bool {
        self.recorded.contains_key(path.as_ref())
    }

    /// Whether anything is at a path, links followed.
    #[must_use]
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.stat(path).is_ok()
    }

    /// Whether anything is at a path, a link at its end not followed.
    #[must_use]
    pub fn is_there(&self, path: impl AsRef<Path>) -> bool {
        self.lstat(path).is_ok()
    }

    fn meta(&self, path: &Path, follow: OFlag) -> Result<Meta, Error> {
        if let Some(node) = self.recorded.get(path) {
            self.keep_look(path);
            return Ok(*node);
        }
        let _reading = self.reading(path)?;
        let failed = |errno| Error::io("stat", self.shown(path), errno);
        let stat = if self.is_host() {
            let flags = if follow.contains(OFlag::O_NOFOLLOW) {
                AtFlags::AT_SYMLINK_NOFOLLOW
            } else {
                AtFlags::empty()
            };
            stat::fstatat(nix::fcntl::AT_FDCWD, path, flags).map_err(failed)?
        } else {
            let file = self.open_file("stat", path, OFlag::O_PATH | follow)?;
            stat::fstat(&file).map_err(failed)?
        };
        Ok(Meta::from_stat(&stat))
    }

    /// The folder of a path, and its name there.
    ///
    /// # Errors
    /// For the path of the Root itself, which has no folder.
    fn split<'p>(&self, path: &'p Path, action: &'static str) -> Result<(&'p Path, &'p OsStr), Error> {
        let none = || Error::io(action, self.shown(path), Errno::EISDIR);
        path.parent().zip(path.file_name()).ok_or_else(none)
    }
}

/// A path that begins at the Root, without its leading slash.
fn inside(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}
