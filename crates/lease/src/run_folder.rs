//! A folder of small files below `/run/rocworker` that only root can have made.
//!
//! Before anything in the folder is believed, it and `/run/rocworker` are checked to be root's alone, so that
//! paths beneath are safe to use by name. Still, no name in them is followed where it is a link, or waited
//! for where it is a fifo: another user may have planted it before the folder was root's alone.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use rustix::fs::Dir;
use rustix::io::Errno;

use crate::folder::{self, ROOTS_ALONE};
use crate::lock::Lock;
use crate::open::{self, failed};
use crate::paths::{Paths, RECORDS};

/// A file that is just being written. What has a tilde at its end is no file of a folder: no id, no render node
/// and no number ends in one.
const TEMPORARY: &str = "new~";

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
    /// The folder of this kind. A holder of the lock has checked the run folder and the folder of records already.
    pub fn of(paths: &Paths, kind: Kind, lock: Option<&Lock>) -> Self {
        Self {
            run: paths.run.clone(),
            path: paths.run.join(kind.folder),
            owner: paths.owner,
            kind,
            run_is_checked: lock.is_some(),
            is_checked: Cell::new(lock.is_some() && kind.folder == RECORDS),
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
        folder::ensure(&self.path, ROOTS_ALONE, self.owner)?;
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
                folder::open(folder).map_err(|error| failed("the folder", folder, "opened", error))?;
            folder::check(folder, &opened, self.owner)?;
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
        let opened = match folder::open(&self.path) {
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
            // The next writer removes the temporary file where this one cannot.
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

#[cfg(test)]
mod tests;
