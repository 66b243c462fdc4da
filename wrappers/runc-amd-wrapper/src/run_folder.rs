//! A folder of small files below `/run/rocworker` that only root can have made.
//!
//! Both folders are checked to be root's alone whenever something in them is believed, so that paths beneath are
//! safe to use by name. All the same no name in them is followed where it is a link, or waited for where it is a
//! fifo: somebody may have planted it while the folder was not yet root's alone.

use std::cell::{Cell, OnceCell};
use std::ffi::CString;
use std::io;
use std::path::{Path, PathBuf};

use crate::lock::Lock;
use crate::open::{self, c_string};
use crate::paths::Paths;
use crate::run_error::{Attempt, Error};
use crate::sys::{self, Begin, Errno, Fd, Stat, flag};

/// A file that is just being written. What has a tilde at its end is no file of a folder: no id, no render node
/// and no number ends in one.
const TEMPORARY: &str = "new~";

/// The mode of `/run/rocworker`: other programs of this product publish there what everybody may read.
pub(crate) const READABLE: u32 = 0o755;
/// The mode of a folder in it, which nobody else can open, so that nobody else can hold a lock on it.
pub(crate) const ROOTS_ALONE: u32 = 0o700;

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
    /// The folder that was checked.
    checked: OnceCell<Fd>,
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
            checked: OnceCell::new(),
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

    /// Makes the folder, mode 0700, where it is missing or more open, and checks that it is root's alone. The one above was
    /// when the lock was taken.
    ///
    /// # Errors
    /// It cannot be made, is a link, or somebody else may write in it.
    pub fn ensure(&self, _lock: &Lock) -> Result<(), Error> {
        let folder = ensure(&self.path, ROOTS_ALONE, self.owner)?;
        self.run_is_checked.set(true);
        let _ = self.checked.set(folder);
        Ok(())
    }

    fn check_run(&self) -> Result<(), Error> {
        if !self.run_is_checked.get() {
            check(&self.run, self.owner)?;
            self.run_is_checked.set(true);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        self.check_run()?;
        if self.checked.get().is_none() {
            let _ = self.checked.set(check(&self.path, self.owner)?);
        }
        Ok(())
    }

    /// A file of this name for the kernel: from the folder, where that is open, which is shorter.
    fn place(&self, name: &str) -> Result<(Begin<'_>, CString), Errno> {
        match self.checked.get() {
            Some(folder) => Ok((Begin::Folder(folder), c_string(Path::new(name))?)),
            None => Ok((Begin::WorkingFolder, c_string(&self.path.join(name))?)),
        }
    }

    fn text(&self, name: &str) -> Result<String, open::Error> {
        let (from, path) = self.place(name).map_err(|errno| open::Error::Io(errno.into()))?;
        open::trusted_text_from(from, &path, self.kind.limit, self.owner)
    }

    /// The text of a file; `None` where there is none of that name.
    ///
    /// # Errors
    /// It cannot be read, or others than root can have written it.
    pub fn read(&self, name: &str) -> Result<Option<String>, Error> {
        match self.text(name) {
            Err(error) if error.is_absent() => Ok(None),
            Err(open::Error::Io(_)) if !self.may_stand(name) => Ok(None),
            read => {
                self.check()?;
                let failed = |error| Error::new(self.kind.what, &self.path_of(name), Attempt::Read, error);
                read.map(Some).map_err(failed)
            }
        }
    }

    /// Whether anything can stand at a path. Nothing does where the way to it is no folder, or the name is one that no
    /// file can have: a container of which nothing can have been kept has nothing.
    fn may_stand(&self, name: &str) -> bool {
        // ENOENT, ENOTDIR, ENAMETOOLONG, ELOOP (asm-generic/errno-base.h, errno.h).
        const NOTHING_THERE: [i32; 4] = [2, 20, 36, 40];
        let found = self.place(name).and_then(|(from, path)| sys::stat_no_follow_from(from, &path));
        !found.is_err_and(|errno| NOTHING_THERE.contains(&errno.0))
    }

    /// The names of all files, as the kernel lists them; none where the folder is not there. What a writer
    /// that was killed left half done is no file.
    ///
    /// # Errors
    /// The folder cannot be read, or is not root's alone.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let failed = |error| Error::io("the folder", &self.path, Attempt::Read)(io::Error::from(error));
        if self.checked.get().is_none() {
            let opened = match sys::open(&c_string(&self.path).map_err(failed)?, OF_A_FOLDER, 0) {
                Err(Errno::NOT_FOUND) => return Ok(Vec::new()),
                opened => opened.map_err(failed)?,
            };
            self.check_run()?;
            let _ = self.checked.set(believed(&self.path, opened, self.owner)?);
        }
        let Some(folder) = self.checked.get() else { return Ok(Vec::new()) };
        let names = sys::names(folder).map_err(failed)?.into_iter();
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
            let text = self.text(&name);
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
        let failed = |attempt| {
            move |errno: Errno| Error::io(self.kind.what, &self.path_of(name), attempt)(errno.into())
        };
        let (from, path) = self.place(name).map_err(failed(Attempt::Write))?;
        let (_, temporary) = self.place(TEMPORARY).map_err(failed(Attempt::Write))?;
        let create = || sys::open_from(from, &temporary, flag::WRITE | flag::CREATE | flag::EXCLUSIVE, 0o600);
        let file = match create() {
            // Of a writer that was killed, or planted: it is taken away and never opened. The lock is held, so that
            // nobody is at work on it.
            Err(Errno::EXISTS) => {
                sys::remove(from, &temporary).map_err(|errno| {
                    Error::io("the file", &self.path_of(TEMPORARY), Attempt::Remove)(errno.into())
                })?;
                create()
            }
            made => made,
        };
        let file = file.map_err(failed(Attempt::Write))?;
        let written = sys::write(&file, text.as_bytes()).map_err(failed(Attempt::Write));
        drop(file);
        let written =
            written.and_then(|()| sys::rename(from, &temporary, &path).map_err(failed(Attempt::Replace)));
        if written.is_err() {
            // The next writer takes it away where this one cannot.
            let _ = sys::remove(from, &temporary);
        }
        written
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        match self.place(name).and_then(|(from, path)| sys::remove(from, &path)) {
            Err(errno) if errno != Errno::NOT_FOUND => {
                Err(Error::io(self.kind.what, &self.path_of(name), Attempt::Remove)(errno.into()))
            }
            _ => Ok(()),
        }
    }

    /// What is to be written cannot be put into words.
    pub fn unwritable(&self, error: serde_json::Error) -> Error {
        Error::io(self.kind.what, &self.path, Attempt::Write)(error.into())
    }
}

/// Makes a folder of this mode where it is missing, checks it, takes away what its mode has beyond that, and answers it,
/// open.
pub(crate) fn ensure(folder: &Path, mode: u32, owner: u32) -> Result<Fd, Error> {
    let failed = |attempt| move |errno: Errno| Error::io("the folder", folder, attempt)(errno.into());
    let name = c_string(folder).map_err(failed(Attempt::Open))?;
    // It is mostly there.
    let opened = match sys::open(&name, OF_A_FOLDER, 0) {
        Err(Errno::NOT_FOUND) => {
            match sys::make_folder(&name, mode) {
                Ok(()) | Err(Errno::EXISTS) => {}
                Err(errno) => return Err(failed(Attempt::Make)(errno)),
            }
            sys::open(&name, OF_A_FOLDER, 0)
        }
        opened => opened,
    };
    let (opened, found) = examined(folder, opened.map_err(failed(Attempt::Open))?, owner)?;
    if found.mode & 0o777 & !mode != 0 {
        sys::set_mode(&opened, mode).map_err(failed(Attempt::Tighten))?;
    }
    Ok(opened)
}

/// A folder, no link, that is root's and that nobody else may write.
fn check(folder: &Path, owner: u32) -> Result<Fd, Error> {
    let failed = |errno: Errno| Error::io("the folder", folder, Attempt::Open)(errno.into());
    let opened = c_string(folder).and_then(|name| sys::open(&name, OF_A_FOLDER, 0)).map_err(failed)?;
    believed(folder, opened, owner)
}

fn believed(folder: &Path, opened: Fd, owner: u32) -> Result<Fd, Error> {
    examined(folder, opened, owner).map(|(opened, _)| opened)
}

fn examined(folder: &Path, opened: Fd, owner: u32) -> Result<(Fd, Stat), Error> {
    let found = sys::stat_of(&opened);
    let found = found.map_err(|errno| Error::io("the folder", folder, Attempt::Read)(errno.into()))?;
    open::check_who_may_write(found.uid, found.mode, owner)
        .map_err(|error| Error::new("the folder", folder, Attempt::Open, error))?;
    Ok((opened, found))
}

#[cfg(test)]
mod tests;
