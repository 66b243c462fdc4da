//! Reads what rocworker's daemon, as root, writes for the exporter, which runs without privileges:
//! [`Published`] and [`Health`].
//!
//! [`Published`]: inventory::published::Published
//! [`Health`]: inventory::health::Health

use std::path::Path;

use allocation::document::Document;
use inventory::health::Age;
use root::{Kind, Root};

/// The most bytes that are read of a file: the daemon writes less.
const LIMIT: usize = 1 << 20;

/// A file that the daemon writes.
pub trait DaemonFile: Document {
    const PATH: &'static str;
    /// Seconds after the write during which the file counts.
    const FRESH_S: u64;

    /// Seconds since 1970.
    fn written_at(&self) -> u64;
}

/// Reads a file while it is fresh; `None` where there is none, or it is old. `now`: seconds since 1970. A captured
/// machine's file is as old as it was when the machine was captured.
///
/// # Errors
/// A sentence on why nothing of the file counts: its time lies in the future, or an error of [`last`].
pub fn read<T: DaemonFile>(root: &Root, now: u64) -> Result<Option<T>, String> {
    let Some(file) = last::<T>(root)? else { return Ok(None) };
    match Age::of(file.written_at(), clock(root, &file, now), T::FRESH_S) {
        Age::Fresh => Ok(Some(file)),
        Age::Old => Ok(None),
        Age::Ahead(seconds) => {
            let path = root.shown(T::PATH);
            Err(format!("{} is {seconds} s from the future: see whether the clock is right", path.display()))
        }
    }
}

/// The time by which the file's age counts, in seconds since 1970: `now`, or when the machine was captured, unless a daemon
/// has run on the capture since.
pub fn clock(root: &Root, file: &impl DaemonFile, now: u64) -> u64 {
    root.taken_at().filter(|taken_at| file.written_at() <= *taken_at).unwrap_or(now)
}

/// Reads the file that the daemon wrote last, however old; `None` where it wrote none.
///
/// # Errors
/// A sentence on why nothing of the file counts: it is damaged or of a newer version, or another user could
/// have written it.
pub fn last<T: DaemonFile>(root: &Root) -> Result<Option<T>, String> {
    let folder = Path::new(T::PATH).parent().unwrap_or(Path::new("/"));
    match root.lstat(folder) {
        Err(error) if error.is_not_found() => return Ok(None),
        Ok(meta) if meta.kind != Kind::Directory => {
            return Err(format!("{} is no folder", root.shown(folder).display()));
        }
        _ => {}
    }
    root.check_folder_owner(folder).map_err(|error| error.to_string())?;
    let bytes = match root.read_trusted(T::PATH, LIMIT) {
        Err(error) if error.is_not_found() => return Ok(None),
        other => other.map_err(|error| error.to_string())?,
    };
    let text = str::from_utf8(&bytes).map_err(|error| format!("is no {}: {error}", T::NAME));
    let parsed = text.and_then(|text| Ok(T::parse(text)?));
    parsed.map(Some).map_err(|why| format!("{} {why}", root.shown(T::PATH).display()))
}
