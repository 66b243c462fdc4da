//! A folder of small files below `/run/rocworker` that only root can have made.
//!
//! Both folders are checked to be root's alone whenever something in them is believed, so that paths beneath are
//! safe to use by name. All the same no name in them is followed where it is a link, or waited for where it is a
//! fifo: somebody may have planted it while the folder was not yet root's alone.

use std::cell::Cell;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::lock::Lock;
use crate::open::{self, c_string};
use crate::paths::Paths;
use crate::run_error::{Attempt, Error};
use crate::sys::{self, Errno, Fd, flag};

/// A file that is just being written. What has a tilde at its end is no file of a folder: no id, no render node
/// and no number ends in one.
const TEMPORARY: &str = "new~";

/// How a folder is opened: one that is no link.
const OF_A_FOLDER: u32 = flag::DIRECTORY | flag::NOFOLLOW | flag::NONBLOCK;

/// The folder, whether it is there or not.
#[derive(Debug)]
pub struct RunFolder {
    run: PathBuf,
    path: PathBuf,
    owner: u32,
    kind: Kind,
    /// What is root's alone stays so: once is enough.
    run_is_checked: Cell<bool>,
    is_checked: Cell<bool>,
}

/// What the files of a folder are.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The folder's name.
    pub folder: &'static str,
    /// What a file in it is called in messages.
    pub what: &'static str,
    /// The longest that is read.
    pub limit: u64,
}

/// A file by its name, and its text or why it cannot be believed.
#[derive(Debug)]
pub struct Entry {
    pub name: String,
    pub text: Result<String, open::Error>,
}

impl RunFolder {
    pub fn of(paths: &Paths, kind: Kind) -> Self {
        Self {
            run: paths.run.clone(),
            path: paths.run.join(kind.folder),
            owner: paths.owner,
            kind,
            run_is_checked: Cell::new(false),
            is_checked: Cell::new(false),
        }
    }

    /// The same for one that has the lock: the folder above was checked for that.
    pub fn under(_lock: &Lock, paths: &Paths, kind: Kind) -> Self {
        let folder = Self::of(paths, kind);
        folder.run_is_checked.set(true);
        folder
    }

    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes the folder, mode 0700, where it is missing, and checks that it is root's alone. The one above was
    /// when the lock was taken.
    ///
    /// # Errors
    /// It cannot be made, is a link, or somebody else may write in it.
    pub fn ensure(&self, _lock: &Lock) -> Result<(), Error> {
        ensure(&self.path, self.owner)?;
        self.run_is_checked.set(true);
        self.is_checked.set(true);
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        for (folder, is_checked) in [(&self.run, &self.run_is_checked), (&self.path, &self.is_checked)] {
            if !is_checked.get() {
                check(folder, self.owner)?;
                is_checked.set(true);
            }
        }
        Ok(())
    }

    /// The text of a file; `None` where there is none of that name.
    ///
    /// # Errors
    /// It cannot be read, or others than root can have written it.
    pub fn read(&self, name: &str) -> Result<Option<String>, Error> {
        let path = self.path.join(name);
        match open::trusted_text(&path, self.kind.limit, self.owner) {
            Err(error) if error.is_absent() => Ok(None),
            Err(open::Error::Io(_)) if !may_stand(&path) => Ok(None),
            read => {
                self.check()?;
                read.map(Some).map_err(|error| Error::new(self.kind.what, &path, Attempt::Read, error))
            }
        }
    }

    /// The names of all files, as the kernel lists them; none where the folder is not there. What a writer
    /// that was killed left half done is no file.
    ///
    /// # Errors
    /// The folder cannot be read, or is not root's alone.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let failed = |error| Error::io("the folder", &self.path, Attempt::Read)(io::Error::from(error));
        let folder = match sys::open(&c_string(&self.path).map_err(failed)?, OF_A_FOLDER, 0) {
            Err(Errno::NOT_FOUND) => return Ok(Vec::new()),
            opened => opened.map_err(failed)?,
        };
        self.check()?;
        let names = sys::names(&folder).map_err(failed)?.into_iter();
        Ok(names
            .filter_map(|name| String::from_utf8(name).ok())
            .filter(|name| !name.ends_with('~'))
            .collect())
    }

    /// Every file, by name in order.
    ///
    /// # Errors
    /// As [`RunFolder::names`].
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        let mut names = self.names()?;
        names.sort_unstable();
        let read = |name: String| {
            let text = open::trusted_text(&self.path.join(&name), self.kind.limit, self.owner);
            Entry { name, text }
        };
        // One that goes away meanwhile is none: `rocworker lease list` reads without the lock.
        let is_there = |entry: &Entry| !entry.text.as_ref().is_err_and(open::Error::is_absent);
        Ok(names.into_iter().map(read).filter(is_there).collect())
    }

    /// Writes a file whole, in place of an older one, without fsync: it does not outlive the machine's run.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn write(&self, _lock: &Lock, name: &str, text: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        let temporary = self.path.join(TEMPORARY);
        let failed = |attempt, errno: Errno| Error::io(self.kind.what, &path, attempt)(errno.into());
        let file = self.fresh(&temporary, &path)?;
        let written = sys::write(&file, text.as_bytes()).map_err(|errno| failed(Attempt::Write, errno));
        drop(file);
        let written = written.and_then(|()| {
            std::fs::rename(&temporary, &path).map_err(Error::io(self.kind.what, &path, Attempt::Replace))
        });
        if written.is_err() {
            // The next writer takes it away where this one cannot.
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }

    /// A new file under the temporary name. Whatever stands there, of a writer that was killed or planted, is
    /// taken away and never opened: the lock is held, so that nobody is at work on it.
    fn fresh(&self, temporary: &Path, path: &Path) -> Result<Fd, Error> {
        let failed = |errno: Errno| Error::io(self.kind.what, path, Attempt::Write)(errno.into());
        let name = c_string(temporary).map_err(failed)?;
        let create = || sys::open(&name, flag::WRITE | flag::CREATE | flag::EXCLUSIVE, 0o600);
        let made = match create() {
            Err(Errno::EXISTS) => {
                let removed = std::fs::remove_file(temporary);
                removed.map_err(Error::io("the file", temporary, Attempt::Remove))?;
                create()
            }
            made => made,
        };
        made.map_err(failed)
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(self.kind.what, &path, Attempt::Remove)(error))
            }
            _ => Ok(()),
        }
    }

    /// What is to be written cannot be put into words.
    pub fn unwritable(&self, error: serde_json::Error) -> Error {
        Error::io(self.kind.what, &self.path, Attempt::Write)(error.into())
    }
}

/// Whether anything can stand at a path. Nothing does where the way to it is no folder, or the name is one that no
/// file can have: a container of which nothing can have been kept has nothing.
fn may_stand(path: &Path) -> bool {
    // ENOENT, ENOTDIR, ENAMETOOLONG, ELOOP (asm-generic/errno-base.h, errno.h).
    const NOTHING_THERE: [i32; 4] = [2, 20, 36, 40];
    let found = c_string(path).and_then(|path| sys::stat_no_follow(&path));
    !found.is_err_and(|errno| NOTHING_THERE.contains(&errno.0))
}

/// Makes a folder, mode 0700, where it is missing, and checks it.
pub(crate) fn ensure(folder: &Path, owner: u32) -> Result<(), Error> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::io("the folder", folder, Attempt::Make)(error))
        }
        _ => check(folder, owner),
    }
}

/// A folder, no link, that is root's and that nobody else may write.
fn check(folder: &Path, owner: u32) -> Result<(), Error> {
    let failed = |attempt| move |errno: Errno| Error::io("the folder", folder, attempt)(errno.into());
    let name = c_string(folder).map_err(failed(Attempt::Open))?;
    let opened = sys::open(&name, OF_A_FOLDER, 0).map_err(failed(Attempt::Open))?;
    let found = sys::stat_of(&opened).map_err(failed(Attempt::Read))?;
    open::check_who_may_write(found.uid, found.mode, owner)
        .map_err(|error| Error::new("the folder", folder, Attempt::Open, error))
}

#[cfg(test)]
mod tests;
