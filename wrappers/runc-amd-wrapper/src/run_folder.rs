//! A folder of small files below `/run/rocworker` that only root can have made.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::open;
use crate::paths::Paths;
use crate::store::{Error, Lock};

/// The longest file that is read.
const LIMIT: u64 = 64 * 1024;

/// The folder, whether it is there or not, and what a file in it is called in messages.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    owner: u32,
    what: &'static str,
}

/// A file by its name, and its text or why it cannot be believed.
#[derive(Debug)]
pub struct Entry {
    pub name: String,
    pub text: Result<String, open::Error>,
}

impl RunFolder {
    pub fn of(paths: &Paths, name: &str, what: &'static str) -> Self {
        Self { path: paths.run.join(name), owner: paths.owner, what }
    }

    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes the folder, mode 0700, where it is missing, and checks that it is root's alone.
    ///
    /// # Errors
    /// It cannot be made, is a link, or somebody else may write in it.
    pub fn ensure(&self) -> Result<(), Error> {
        match DirBuilder::new().mode(0o700).create(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(self.error("the folder", &self.path, open::Error::Io(error)))
            }
            _ => self.trusted(),
        }
    }

    fn trusted(&self) -> Result<(), Error> {
        let failed = |error| self.error("the folder", &self.path, error);
        let metadata = open::folder(&self.path)
            .and_then(|file| file.metadata())
            .map_err(|error| failed(open::Error::Io(error)))?;
        open::check_owner(&metadata, self.owner).map_err(failed)
    }

    /// Every file, by name in order; none where the folder is not there. What a writer that was killed left
    /// half done is no file of it.
    ///
    /// # Errors
    /// The folder cannot be read, or is not root's alone.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        let failed = |error| self.error("the folder", &self.path, open::Error::Io(error));
        let listed = match std::fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.map_err(failed)?,
        };
        self.trusted()?;
        let mut names = Vec::new();
        for entry in listed {
            let name = entry.map_err(failed)?.file_name();
            names.extend(name.into_string().ok().filter(|name| !name.ends_with('~')));
        }
        names.sort_unstable();
        let read = |name: String| {
            let text = open::trusted_text(&self.path.join(&name), LIMIT, self.owner);
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
        // No file has this name, and the lock is held.
        let temporary = self.path.join("new~");
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| std::fs::rename(&temporary, &path));
        written.map_err(|error| {
            // It may not even be there.
            let _ = std::fs::remove_file(&temporary);
            self.error(self.what, &path, open::Error::Io(error))
        })
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn remove(&self, _lock: &Lock, name: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.error(self.what, &path, open::Error::Io(error)))
            }
            _ => Ok(()),
        }
    }

    /// What is to be written cannot be put into words.
    pub fn unwritable(&self, error: serde_json::Error) -> Error {
        self.error(self.what, &self.path, open::Error::Io(error.into()))
    }

    fn error(&self, what: &'static str, path: &Path, error: open::Error) -> Error {
        Error::File { what, path: path.to_owned(), error }
    }
}
