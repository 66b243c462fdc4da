//! Paths that a configuration may name.

use std::path::{Component, Path};

/// An absolute path inside a folder, without `..`.
///
/// # Errors
/// What is wrong with it, after the key's name.
pub(super) fn plain(path: &Path) -> Result<(), String> {
    let plain = path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
    if plain && path.parent().is_some_and(|folder| folder != Path::new("/")) {
        return Ok(());
    }
    Err(format!("{:?} is not an absolute path inside a folder", path.display().to_string()))
}
