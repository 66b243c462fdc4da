//! `exec --process FILE`: a process of its own, which sees nothing of what was edited into the bundle.
//!
//! containerd writes FILE into `/tmp`, where others can put a link or a hard link in its place. The wrapper
//! therefore edits it through the descriptor that it checked. Where a container has GPUs and FILE is not
//! plainly the caller's own, the exec fails: another program tampers with it, or the process would lack its groups.
//! An exec without `--process` takes groups and environment from the bundle.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use allocation::{bundle::ProcessEdits, document::Document as _, process, record::Record};

use rustix::fs::OFlags;

use crate::container::Container;
use crate::log::Log;
use crate::memlock;
use crate::paths::Paths;
use lease::open;
use lease::store;

const LIMIT: u64 = 16 * 1024 * 1024;

/// Writes what `create` gave into the process file too.
///
/// # Errors
/// The sentence that says why the process would not have what the container was given.
pub fn prepare(
    container: &Container<'_>,
    file: &[u8],
    effective_user: u32,
    paths: &Paths,
    log: &Log<'_>,
) -> Result<(), String> {
    // Another user's containers have no record, and the folder is closed to that user.
    if effective_user != paths.lease.owner {
        return Ok(());
    }
    let id = container.key().id;
    let unreadable = |error: String| format!("what the container {id} was given cannot be read: {error}");
    let text = store::records(&paths.lease, None).read(&container.key().file_name()).map_err(unreadable)?;
    let Some(text) = text else { return Ok(()) };
    let record = Record::parse(&text).map_err(|error| unreadable(format!("the record {error}")))?;
    let mut edits = record.process_edits();
    if edits.is_empty() {
        return Ok(());
    }
    if !container.has_nodes_of(&record) {
        return Ok(());
    }
    let path = Path::new(OsStr::from_bytes(file));
    memlock::keep_within_reach(&mut edits, log);
    edit(path, &edits, effective_user).map_err(|error| {
        format!("the container {id} has GPUs, and the process file {} {error}", path.display())
    })
}

fn edit(path: &Path, edits: &ProcessEdits<'_>, effective_user: u32) -> Result<(), String> {
    let (file, metadata) = match open::regular(path, OFlags::RDWR | OFlags::NOFOLLOW) {
        // runc says so itself.
        Err(error) if error.is_absent() => return Ok(()),
        opened => opened.map_err(|error| error.to_string())?,
    };
    if metadata.uid() != effective_user {
        return Err(format!("is user {}'s, not the caller's: it is not edited", metadata.uid()));
    }
    if metadata.nlink() != 1 {
        return Err("has another hard link: it is not edited".to_owned());
    }
    let text = open::bytes(&file, &metadata, LIMIT).map_err(|error| error.to_string())?;
    let text = String::from_utf8(text).map_err(|_| "is not UTF-8 text".to_owned())?;
    let edited = process::inject(&text, edits).map_err(|error| format!("cannot be edited: {error}"))?;
    let Some(edited) = edited else { return Ok(()) };
    let write = |text: &str| -> io::Result<()> {
        file.write_all_at(text.as_bytes(), 0)?;
        file.set_len(u64::try_from(text.len()).map_err(io::Error::other)?)
    };
    write(&edited).map_err(|error| {
        // The file is the engine's: half of an edit does not stay in it.
        let _ = write(&text);
        format!("cannot be written: {error}{}", open::remedy_of_write(&error))
    })
}
