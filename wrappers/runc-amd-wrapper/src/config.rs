//! A bundle's `config.json`: read once, and put in its place again as a whole.
//!
//! What is not edited: a link, since the edit would make a private copy of a shared file; a file of more
//! than 16 MiB; and what is no regular file at all. These are only looked through for a request.

use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use allocation::request::Request;
use rustix::fs::OFlags;

use crate::scan;
use lease::open;

/// Real bundles have 10 to 60 KB.
pub const LIMIT: u64 = 16 * 1024 * 1024;

/// The file, and what it was when it was read.
#[derive(Debug)]
pub struct Config {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    found: Metadata,
    /// Held open, so that no other file can get its number.
    _file: File,
}

/// The path at which runc looks for a bundle's config: `--bundle` as it was given, from the working
/// directory.
pub fn path_in(bundle: Option<&[u8]>) -> PathBuf {
    Path::new(OsStr::from_bytes(bundle.unwrap_or_default())).join("config.json")
}

/// Reads the file if it is one that can be edited.
///
/// # Errors
/// The file cannot be edited, or cannot be read.
pub fn read(path: PathBuf) -> Result<Config, (PathBuf, open::Error)> {
    let read = || {
        let (file, found) = open::regular(&path, OFlags::NOFOLLOW)?;
        Ok((open::bytes(&file, &found, LIMIT)?, found, file))
    };
    match read() {
        Ok((bytes, found, file)) => Ok(Config { path, bytes, found, _file: file }),
        Err(error) => Err((path, error)),
    }
}

/// Whether a string in the file is a request for GPUs, whatever the file's length and shape.
///
/// # Errors
/// The file cannot be read, or not without taking bytes away from runc, as with a fifo.
pub fn asks(path: &Path) -> Result<bool, open::Error> {
    // Through a link, as runc would open it.
    let (file, _) = open::regular(path, OFlags::empty())?;
    Ok(any_asks(file)?)
}

/// Whether a string in these bytes is a request for GPUs, whatever their length and shape.
pub fn bytes_ask(bytes: &[u8]) -> bool {
    any_asks(bytes).unwrap_or(false)
}

/// A request that cannot be understood asks for something.
fn any_asks(text: impl io::Read) -> io::Result<bool> {
    let mut asks = false;
    scan::requests(text, &mut |request| {
        asks |= Request::from_env([request])
            .map_or(true, |request| request.is_some_and(|request| request.asks_for_gpus()));
    })?;
    Ok(asks)
}

impl Config {
    /// Whether another file has taken this one's place: the wrapper replaces the file that it edits.
    pub fn was_replaced(&self) -> bool {
        self.path.symlink_metadata().is_ok_and(|now| !open::is_same_file(&now, &self.found))
    }

    /// Puts the text in the file's place, with its mode and owner: whole or not at all. There is no
    /// fsync, since a bundle does not outlive the machine's run.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn replace(&self, text: &str) -> Result<(), String> {
        let temporary = format!(".config.json.rocworker.{}", std::process::id());
        let temporary = self.path.with_file_name(temporary);
        let replaced = self.write(&temporary, text).and_then(|()| std::fs::rename(&temporary, &self.path));
        if replaced.is_err() {
            // The temporary file may not even be there.
            let _ = std::fs::remove_file(&temporary);
        }
        replaced.map_err(|error| {
            let remedy = open::remedy_of_write(&error);
            format!("writing {} anew failed: {error}{remedy}", self.path.display())
        })
    }

    fn write(&self, temporary: &Path, text: &str) -> io::Result<()> {
        let (uid, gid, mode) = (self.found.uid(), self.found.gid(), self.found.mode() & 0o7777);
        // Bits beyond these come behind the owner, whose change takes them away.
        let create = || OpenOptions::new().write(true).create_new(true).mode(mode & 0o777).open(temporary);
        let mut file = match create() {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // An earlier process with this pid was killed, and left the file.
                std::fs::remove_file(temporary)?;
                create()?
            }
            created => created?,
        };
        let made = file.metadata()?;
        if (made.uid(), made.gid()) != (uid, gid) {
            fchown(&file, Some(uid), Some(gid))?;
        }
        // The caller's umask has a part in it.
        if made.mode() & 0o7777 != mode {
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        file.write_all(text.as_bytes())
    }
}
