//! Paths that a configuration may name.

use std::path::{Component, Path};

/// What engines are never told of: a file of theirs there would take the place of ours.
const OURS: [&str; 2] = ["/var/lib/rocworker", "/etc/rocworker"];

/// An absolute path inside a folder, without `..`, and not rocworker's own.
///
/// # Errors
/// What is wrong with it, after the key's name.
pub(super) fn plain(path: &Path) -> Result<(), String> {
    if let Some(ours) = OURS.iter().find(|ours| path.starts_with(ours)) {
        return Err(format!("{:?} is rocworker's own ({ours})", path.display().to_string()));
    }
    absolute(path)
}

/// An absolute path inside a folder, without `..`.
///
/// # Errors
/// As [`plain`].
pub(super) fn absolute(path: &Path) -> Result<(), String> {
    let plain = path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
    if plain && path.parent().is_some_and(|folder| folder != Path::new("/")) {
        return Ok(());
    }
    Err(format!("{:?} is not an absolute path inside a folder", path.display().to_string()))
}
