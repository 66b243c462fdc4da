//! An archive for an image that is being built: no receipt names it, so that nothing reverts it.

use std::path::Path;

use root::Root;

use super::{Source, is_folder, put, sweep_of};
use crate::apt::{PackageManager, Step};
use crate::digest::Digest;
use crate::error::Error;
use crate::model::Progress;
use crate::receipt::Store;

/// Fetches an archive with this machine's programs and unpacks it at a path beneath `root`; returns its
/// SHA-256. `None`: the folder at the path already holds what is asked for, and stays as it is.
///
/// # Errors
/// When another run holds the lock for more than a minute; else a sentence, and nothing is left at the path.
pub fn unpack(
    root: &Root,
    manager: &PackageManager,
    path: &Path,
    source: &Source<'_>,
    on_progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Result<Option<Digest>, String>, Error> {
    let _lock = Store::new(root).lock(on_progress)?;
    let shown = root.shown(path);
    if root.lstat(path).is_ok() {
        let missing = source.holds.iter().find(|it| !root.exists(path.join(it)));
        return Ok(match missing {
            None if is_folder(root, path) => Ok(None),
            _ => Err(format!(
                "{} is there and is no whole installation: move it out of the way, and run this again",
                shown.display()
            )),
        });
    }
    let hear = &mut |step: Step| on_progress(Progress::Waits(step.text));
    let put = put(root, manager, path, source, |_, _| Ok(()), hear);
    sweep_of(root, path);
    Ok(put.map(Some))
}
