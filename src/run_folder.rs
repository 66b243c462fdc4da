//! /run/rocworker, which the daemon and the wrapper share.

use std::path::Path;

use nix::errno::Errno;
use root::{Kind, Root};

/// The folder beneath the Root.
pub const RUN: &str = "/run/rocworker";

/// Whether files in /run/rocworker may decide anything, as the wrapper asks too: it is a folder, no link, that root owns
/// and only root can write to. Whoever needs a missing folder makes it.
pub fn check_owner(root: &Root) -> Result<(), root::Error> {
    check_folder(root, Path::new(RUN))
}

/// Whether a folder, if it is there, is one that root owns and only root can write to, and no link.
pub fn check_folder(root: &Root, folder: &Path) -> Result<(), root::Error> {
    root.check_folder_owner(folder)?;
    match root.lstat(folder) {
        Ok(found) if found.kind != Kind::Directory => Err(root::Error::Io {
            action: "use as a folder of root's",
            path: root.shown(folder),
            errno: Errno::ENOTDIR,
        }),
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
