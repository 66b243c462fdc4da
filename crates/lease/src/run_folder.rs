//! A folder of small files below `/run/rocworker` that only root can have made.
//!
//! Before anything in the folder is believed, it and `/run/rocworker` are checked to be root's alone, so that
//! paths beneath are safe to use by name. Still, no name in them is followed where it is a link, or waited
//! for where it is a fifo: another user may have planted it before the folder was root's alone.

use std::cell::Cell;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::lock::Lock;
use crate::open;
use crate::paths::Paths;
use crate::store;

/// A file that is just being written. What has a tilde at its end is no file of a folder: no id, no render node
/// and no number ends in one.
const TEMPORARY: &str = "new~";

/// The mode of `/run/rocworker`: other programs of this product publish there what every user may read.
pub const READABLE: u32 = 0o755;
/// The mode of a folder in it, which no other user can open or lock.
pub const ROOTS_ALONE: u32 = 0o700;

/// The folder, whether it is there or not.
#[derive(Debug)]
pub struct RunFolder {
    run: PathBuf,
    path: PathBuf,
    owner: u32,
    kind: Kind,
    run_is_checked: bool,
    /// Whether the folder was found to be root's alone. It stays so: one check is enough.
    is_checked: Cell<bool>,
}

/// What the files of a folder hold.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The folder's name.
    pub folder: &'static str,
    /// The files' name in messages.
    pub what: &'static str,
    /// The most bytes that are read of a file.
    pub limit: u64,
}

/// The text of a file, or why it cannot be believed.
pub type Text = Result<String, open::Error>;

impl RunFolder {
    /// The lock checked the folder above, and the one of records.
    pub fn of(paths: &Paths, kind: Kind, lock: Option<&Lock>) -> Self {
        Self {
            run: paths.run.clone(),
            path: paths.run.join(kind.folder),
            owner: paths.owner,
            kind,
            run_is_checked: lock.is_some(),
            is_checked: Cell::new(lock.is_some() && kind.folder == store::FOLDER),
        }
    }

    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes the folder with mode 0700, where it is missing or more open, and checks that it is root's alone.
    /// The lock has checked `/run/rocworker`.
    ///
    /// # Errors
    /// The folder cannot be made, is a link, or another user may write in it.
    pub fn ensure(&self, _lock: &Lock) -> Result<(), String> {
        ensure(&self.path, ROOTS_ALONE, self.owner)?;
        self.is_checked.set(true);
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if self.is_checked.get() {
            return Ok(());
        }
        let unchecked = [&self.run, &self.path].into_iter().skip(usize::from(self.run_is_checked));
        for folder in unchecked {
            let opened =
                open_folder(folder).map_err(|error| failed("the folder", folder, "opened", error))?;
            check(folder, &opened, self.owner)?;
        }
        self.is_checked.set(true);
        Ok(())
    }

    fn text(&self, name: &str) -> Text {
        open::trusted_text(&self.path_of(name), self.kind.limit, self.owner)
    }

    /// The text of a file; `None` where there is none of that name.
    ///
    /// # Errors
    /// The file cannot be read, or others than root can have written it.
    pub fn read(&self, name: &str) -> Result<Option<String>, String> {
        match self.text(name) {
            Err(error) if error.is_absent() => Ok(None),
            Err(open::Error::Io(_)) if !self.may_exist(name) => Ok(None),
            read => {
                self.check()?;
                read.map(Some).map_err(|error| failed(self.kind.what, &self.path_of(name), "read", error))
            }
        }
    }

    /// Whether anything can exist at the file's path. Nothing does where the way to it is no folder, or where
    /// no file can have the name: then no state of the container can have been kept.
    fn may_exist(&self, name: &str) -> bool {
        let found = rustix::fs::lstat(self.path_of(name));
        !matches!(found, Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::LOOP))
    }

    /// The names of all files, as the kernel lists them; none where the folder is not there. What a writer
    /// that was killed left half done is no file.
    ///
    /// # Errors
    /// The folder cannot be read, or is not root's alone.
    pub fn names(&self) -> Result<Vec<String>, String> {
        let failed = |error: io::Error| failed("the folder", &self.path, "read", error);
        let opened = match open_folder(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened.map_err(failed)?,
        };
        self.check()?;
        let mut names = Vec::new();
        for entry in Dir::new(opened).map_err(|errno| failed(errno.into()))? {
            let entry = entry.map_err(|errno| failed(errno.into()))?;
            names.extend(entry.file_name().to_str().map(str::to_owned));
        }
        names.retain(|name| name != "." && name != ".." && !name.ends_with('~'));
        Ok(names)
    }

    /// Every file in the order of the names, with its text or why the text cannot be believed.
    ///
    /// # Errors
    /// An error of [`RunFolder::names`].
    pub fn entries(&self) -> Result<Vec<(String, Text)>, String> {
        let mut names = self.names()?;
        names.sort_unstable();
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            match self.text(&name) {
                // A file that is removed meanwhile is left out: `rocworker lease list` reads without the
                // lock.
                Err(error) if error.is_absent() => {}
                text => entries.push((name, text)),
            }
        }
        Ok(entries)
    }

    /// Replaces a file as a whole, without fsync: the files do not outlive the machine's run.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn write(&self, _lock: &Lock, name: &str, text: &str) -> Result<(), String> {
        let path = self.path_of(name);
        let what = self.kind.what;
        let temporary = self.path_of(TEMPORARY);
        let create = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
        let file = match create() {
            // A killed writer, or another user, has left this file: the wrapper removes it and never opens
            // it. Under the lock no process is writing it.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                std::fs::remove_file(&temporary)
                    .map_err(|error| failed("the file", &temporary, "removed", error))?;
                create()
            }
            made => made,
        };
        let unwritten = |error: io::Error| failed(what, &path, "written", error);
        let mut file = file.map_err(unwritten)?;
        let written = file.write_all(text.as_bytes()).map_err(unwritten);
        drop(file);
        let replace = || std::fs::rename(&temporary, &path);
        let written =
            written.and_then(|()| replace().map_err(|error| failed(what, &path, "put in its place", error)));
        if written.is_err() {
            // The next writer takes it away where this one cannot.
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn remove(&self, name: &str) -> Result<(), String> {
        let path = self.path_of(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(failed(self.kind.what, &path, "removed", error))
            }
            _ => Ok(()),
        }
    }
}

/// Makes a folder of this mode where it is missing, checks it, takes away what its mode has beyond that, and answers it,
/// open.
pub fn ensure(folder: &Path, mode: u32, owner: u32) -> Result<File, String> {
    let failed = |attempt| move |error: io::Error| failed("the folder", folder, attempt, error);
    // The folder is mostly there.
    let opened = match open_folder(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            match DirBuilder::new().mode(mode).create(folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed("made")(error)),
                _ => open_folder(folder),
            }
        }
        opened => opened,
    };
    let opened = opened.map_err(failed("opened"))?;
    if check(folder, &opened, owner)? & 0o777 & !mode != 0 {
        opened.set_permissions(Permissions::from_mode(mode)).map_err(failed("closed to others"))?;
    }
    Ok(opened)
}

/// Opens a folder that is no link.
fn open_folder(folder: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?.into())
}

/// A folder that is root's and in which no other user may write; answers its mode.
fn check(folder: &Path, opened: &File, owner: u32) -> Result<u32, String> {
    let found = opened.metadata().map_err(|error| failed("the folder", folder, "read", error))?;
    open::check_who_may_write(found.uid(), found.mode(), owner)
        .map_err(|error| failed("the folder", folder, "opened", error))?;
    Ok(found.mode())
}

/// The sentence that says what is not as it must be below `/run/rocworker`: what it is, as a person calls it, where, the
/// kernel's answer and what to do. `attempt` is what cannot be done to it.
pub fn failed(what: &str, path: &Path, attempt: &str, error: impl Into<open::Error>) -> String {
    let error = error.into();
    let said = match &error {
        open::Error::Io(io) if io.kind() == ErrorKind::NotADirectory => {
            "is no folder, or a symbolic link".to_owned()
        }
        open::Error::Io(io) if !error.is_link() => format!("cannot be {attempt}: {io}"),
        error => error.to_string(),
    };
    format!("{what} {} {said}{}", path.display(), remedy(&error))
}

/// The remedy, as the end of the sentence.
fn remedy(error: &open::Error) -> &'static str {
    match error {
        error if error.is_link() => ": remove it",
        open::Error::Io(error) => match error.kind() {
            ErrorKind::NotADirectory | ErrorKind::IsADirectory => ": remove it",
            ErrorKind::InvalidFilename => ": give the container a shorter id, or runc a shorter --root",
            // The kernel's error for opening a socket as a file.
            _ if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => ": remove it",
            _ => remedy_of_write(error),
        },
        open::Error::NotRegular => ": remove it",
        open::Error::Foreign(_) => ": make it so, or remove it",
        open::Error::TooLong { .. } | open::Error::NotText => "",
    }
}

/// The remedy for a failed write, as the end of a sentence.
pub fn remedy_of_write(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull => ": make room on that file system",
        ErrorKind::ReadOnlyFilesystem => ": mount that file system for writing",
        ErrorKind::FileTooLarge => ": raise LimitFSIZE= of the engine's service",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
