//! The receipt on disk, and the bytes of what was there before.

use std::path::{Path, PathBuf};
use std::time::Duration;

use root::{Attributes, Lock, Root};

use super::document::{read_document, sweep_folder, write_document};
use super::{Receipt, VERSION, history};
use crate::digest::Digest;
use crate::error::Error;
use crate::model::{LIMIT, Managed, Progress, State};

/// The folder of rocworker's stored state, beneath a Root.
pub const FOLDER: &str = "/var/lib/rocworker";
const RECEIPT: &str = "/var/lib/rocworker/receipt.json";
const BEFORE: &str = "/var/lib/rocworker/before";
const LOCK: &str = "/var/lib/rocworker/lock";

/// The stored files that outlive an update, with the newest schema_version of each that this version reads.
pub const FORMATS: [(&str, u32); 2] = [(RECEIPT, VERSION), (history::PATH, history::VERSION)];

/// How long a second apply waits for the first.
const PATIENCE: Duration = Duration::from_secs(60);

/// Replaced bytes may hold secrets: a registry's password in a configuration.
const SECRET: Attributes = Attributes { mode: 0o600, owner: None };

/// The folder beneath a Root in which receipts are kept.
#[derive(Debug, Clone, Copy)]
pub struct Store<'a> {
    root: &'a Root,
}

impl<'a> Store<'a> {
    #[must_use]
    pub fn new(root: &'a Root) -> Self {
        Self { root }
    }

    /// Keeps every other apply and undo out as long as the value lives. `on_progress` is called when another
    /// run has to end first.
    ///
    /// # Errors
    /// When another run holds the lock for more than a minute, or the folder cannot be written.
    pub fn lock(&self, on_progress: &mut dyn FnMut(Progress<'_>)) -> Result<Lock, Error> {
        self.root.check_folder_owner(FOLDER)?;
        self.root.check_folder_owner(BEFORE)?;
        match self.root.lock(LOCK, Duration::ZERO) {
            Err(root::Error::Locked { path, .. }) => {
                let (path, limit) = (path.display(), PATIENCE.as_secs());
                on_progress(Progress::Waits(format!(
                    "waiting up to {limit} s for another run of rocworker, which has {path}"
                )));
            }
            other => return Ok(other?),
        }
        Ok(self.root.lock(LOCK, PATIENCE)?)
    }

    /// The receipt; an empty one where none is.
    ///
    /// # Errors
    /// When the receipt cannot be read or believed, is cut, or was written by a newer version: then nothing may be
    /// changed, for it is not known what rocworker manages.
    pub fn receipt(&self) -> Result<Receipt, Error> {
        // rocworker writes through no link: a receipt that is read through one would fail at the undo only.
        match self.root.check_way(RECEIPT) {
            Err(root::Error::Folder { path, .. }) => return Err(Error::NoFolder { path }),
            Err(error) if error.is_denied() => return Err(Error::Denied(error)),
            way => way?,
        }
        self.root.check_folder_owner(FOLDER)?;
        let damaged = |path, problem| Error::Damaged { path, problem };
        match read_document(self.root, Path::new(RECEIPT), VERSION, damaged) {
            Err(Error::Root(error)) if error.is_denied() => Err(Error::Denied(error)),
            receipt => Ok(receipt?.unwrap_or_default()),
        }
    }

    /// Writes the receipt, or removes it when nothing is left to undo.
    pub(crate) fn save(&self, receipt: &Receipt) -> Result<(), Error> {
        if receipt.is_empty() {
            self.root.remove(RECEIPT)?;
            return Ok(());
        }
        write_document(self.root, RECEIPT, receipt)
    }

    /// Keeps the bytes of a file before it is changed.
    pub(crate) fn keep(&self, bytes: &[u8]) -> Result<(), Error> {
        self.root.write(blob(&Digest::of(bytes)), bytes, SECRET)?;
        Ok(())
    }

    /// The bytes that were kept, which are what was kept and nothing else.
    pub(crate) fn kept(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let path = blob(digest);
        let lost = |problem: String| Error::Lost { path: self.root.shown(&path), problem };
        let bytes = match self.root.read_trusted(&path, LIMIT) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Err(lost("it is not there any more".to_owned())),
            Err(error) => return Err(error.into()),
        };
        if Digest::of(&bytes) != *digest {
            return Err(lost("its bytes are not those that were kept".to_owned()));
        }
        Ok(bytes)
    }

    /// Removes what killed runs left of rocworker's own files. Only under the lock.
    pub(crate) fn sweep_own(&self) {
        for path in [RECEIPT, history::PATH] {
            self.root.sweep_all(path);
        }
    }

    /// Removes the bytes that no entry names any more. What cannot go hinders nothing, in rocworker's own folder.
    pub(crate) fn sweep(&self, receipt: &Receipt) {
        let named = receipt.entries.iter().filter_map(|entry| entry.before.digest()).map(blob);
        sweep_folder(self.root, BEFORE, &named.collect());
    }

    /// The text of an edited file without the managed keys. `None` where none of its keys are managed, or
    /// nothing distinguishes them from the others.
    #[must_use]
    pub fn without_managed(&self, receipt: &Receipt, path: &Path, text: &str) -> Option<String> {
        let entry = receipt.entry(path)?;
        let Managed::Edited { edit, .. } = &entry.managed else { return None };
        let before = self.text_before(&entry.before).ok()?;
        Some(edit.revert(text, before.as_deref()).ok()?.text.unwrap_or_default())
    }

    /// The text of what was at a path before, for an edited file. `None`: nothing was there.
    pub(crate) fn text_before(&self, state: &State) -> Result<Option<String>, Error> {
        let Some(digest) = state.digest() else { return Ok(None) };
        let bytes = self.kept(digest)?;
        String::from_utf8(bytes).map(Some).map_err(|_| Error::Lost {
            path: self.root.shown(blob(digest)),
            problem: "it is not text".to_owned(),
        })
    }
}

fn blob(digest: &Digest) -> PathBuf {
    Path::new(BEFORE).join(digest.as_str())
}
