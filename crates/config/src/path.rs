//! Paths that a configuration may name.

use std::path::{Component, Path};

/// Folders that engines never learn of: an engine's file there would replace one of rocworker's.
const OWN: [&str; 2] = ["/var/lib/rocworker", "/etc/rocworker"];

/// Folders whose files are the kernel's: what is written there goes at the next boot, or is no file at all.
const KERNELS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Checks a path at which a file can be kept: [`plain`], and in no folder of the kernel's.
///
/// # Errors
/// What is wrong with the path, to be read after the key's name.
pub(super) fn file(path: &Path) -> Result<(), String> {
    match KERNELS.iter().find(|folder| path.starts_with(folder)) {
        Some(folder) => Err(format!(
            "{:?} is in {folder}, which the kernel makes anew at each boot: name a path outside of it",
            path.display().to_string()
        )),
        None => plain(path),
    }
}

/// Checks an absolute path inside a folder, without `..`, and not rocworker's own.
///
/// # Errors
/// What is wrong with the path, to be read after the key's name.
pub(super) fn plain(path: &Path) -> Result<(), String> {
    match OWN.iter().find(|own| path.starts_with(own)) {
        Some(own) => Err(format!("{:?} is rocworker's own ({own})", path.display().to_string())),
        None => absolute(path),
    }
}

/// Checks an absolute path inside a folder, without `..`.
///
/// # Errors
/// What is wrong with the path, to be read after the key's name.
pub(super) fn absolute(path: &Path) -> Result<(), String> {
    let plain = path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
    if plain && path.parent().is_some_and(|folder| folder != Path::new("/")) {
        return Ok(());
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(format!("{:?} has a `..`: write the path without it", path.display().to_string()));
    }
    Err(format!("{:?} is not an absolute path inside a folder", path.display().to_string()))
}
