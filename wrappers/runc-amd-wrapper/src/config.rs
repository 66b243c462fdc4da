//! A bundle's `config.json`: read once, and put in its place again as a whole.
//!
//! What is not edited: a link, which would make of somebody's shared file a private one; a file of more
//! than 16 MiB; and what is no regular file at all. These are only looked through for a request.

use std::ffi::{CStr, OsStr};
use std::io::IoSlice;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use allocation::bundle::Edited;
use allocation::request::Request;

use crate::open::{self, c_string};
use crate::scan;
use crate::sys::{self, Begin, Errno, Fd, Stat, flag};

/// Real bundles have 10 to 60 KB.
pub const LIMIT: u64 = 16 * 1024 * 1024;

/// The file, and what it was when it was read.
#[derive(Debug)]
pub struct Config {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    found: Stat,
    /// Held open, so that no other file can get its number.
    _file: Fd,
}

/// Where runc looks for a bundle's config: `--bundle` as it was given, from the working directory.
pub fn path_in(bundle: Option<&[u8]>) -> PathBuf {
    Path::new(OsStr::from_bytes(bundle.unwrap_or_default())).join("config.json")
}

/// Reads the file if it is one that can be edited. `seen`: the file, where it was opened and looked at before.
pub fn read(path: PathBuf, seen: Option<(Fd, Stat)>) -> Result<Config, (PathBuf, open::Error)> {
    if let Some((file, found)) = seen
        && let Some(bytes) = read_again(&file, &found)
    {
        return Ok(Config { path, bytes, found, _file: file });
    }
    let read = || {
        let name = c_string(&path).map_err(|errno| open::Error::Io(errno.into()))?;
        let (file, found) = open::regular_from(Begin::WorkingFolder, &name)?;
        Ok((open::whole(&file, &found, LIMIT)?, found, file))
    };
    match read() {
        Ok((bytes, found, file)) => Ok(Config { path, bytes, found, _file: file }),
        Err(error) => Err((path, error)),
    }
}

/// The bytes of a file that is as long as it was a moment ago.
fn read_again(file: &Fd, found: &Stat) -> Option<Vec<u8>> {
    let size = usize::try_from(found.size).ok()?;
    // And for what is learnt from it.
    sys::provide(size + 2560);
    let mut bytes = Vec::with_capacity(size + 1);
    (sys::read_from_start(file, &mut bytes, size + 1) == Ok(size)).then_some(bytes)
}

/// Whether some string in the file asks for GPUs, whatever its length and shape; `None` where it cannot
/// be read without taking something away from runc, as a fifo cannot, or cannot be read at all.
pub fn asks(path: &Path) -> Option<bool> {
    let (file, _) = open::regular_behind_links(path).ok()?;
    scan::requests(file).ok().map(|requests| any_asks(&requests))
}

/// The same for bytes that are at hand.
pub fn bytes_ask(bytes: &[u8]) -> bool {
    scan::requests(bytes).is_ok_and(|requests| any_asks(&requests))
}

/// More than are kept may stand in the bundle.
fn any_asks(requests: &[String]) -> bool {
    requests.len() >= scan::MOST || requests.iter().any(|request| is_asking(request))
}

/// A request that cannot be understood asks for something.
fn is_asking(request: &str) -> bool {
    Request::from_env([request])
        .map_or(true, |request| request.is_some_and(|request| request.asks_for_gpus()))
}

impl Config {
    /// Whether another file stands in its place now: what this wrapper edits, it replaces.
    pub fn was_replaced(&self) -> bool {
        let now = c_string(&self.path).and_then(|path| sys::stat_no_follow(&path));
        now.is_ok_and(|now| !now.is_same_file(&self.found))
    }

    /// Puts the text in the file's place, with its mode and owner: whole or not at all. There is no
    /// fsync, since a bundle does not outlive the machine's run.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn replace(&self, text: &Edited<'_>) -> Result<(), String> {
        let mut temporary = ".config.json.rocworker.".to_owned();
        allocation::write_number(&mut temporary, std::process::id().into());
        let replace = || {
            let (path, temporary) = (c_string(&self.path)?, c_string(&self.path.with_file_name(&temporary))?);
            let written = self.write(&temporary, text);
            let replaced = written.and_then(|()| sys::rename(Begin::WorkingFolder, &temporary, &path));
            if replaced.is_err() {
                // It may not even be there.
                let _ = sys::remove(Begin::WorkingFolder, &temporary);
            }
            replaced
        };
        replace().map_err(|errno: Errno| {
            let error = std::io::Error::from(errno);
            format!("writing {} anew failed: {error}", self.path.display())
        })
    }

    fn write(&self, temporary: &CStr, text: &Edited<'_>) -> Result<(), Errno> {
        let Stat { uid, gid, .. } = self.found;
        let mode = self.found.mode & 0o7777;
        // Bits beyond these come behind the owner, whose change takes them away.
        let create = || sys::open(temporary, flag::WRITE | flag::CREATE | flag::EXCLUSIVE, mode & 0o777);
        let file = match create() {
            Err(Errno::EXISTS) => {
                // Of an earlier process with this number, which was killed.
                sys::remove(Begin::WorkingFolder, temporary)?;
                create()?
            }
            created => created?,
        };
        let made = sys::stat_of(&file)?;
        if (made.uid, made.gid) != (uid, gid) {
            sys::give_to(&file, uid, gid)?;
        }
        // The caller's umask has a part in it.
        if made.mode & 0o7777 != mode {
            sys::set_mode(&file, mode)?;
        }
        let mut pieces: Vec<IoSlice<'_>> = Vec::with_capacity(32);
        pieces.extend(text.pieces().map(|piece| IoSlice::new(piece.as_bytes())));
        sys::write_pieces(&file, &mut pieces)
    }
}
