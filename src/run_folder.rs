//! /run/rocworker, which the daemon and the wrapper share.

use nix::errno::Errno;
use root::{Kind, Root};

/// The folder beneath the Root.
pub const RUN: &str = "/run/rocworker";

/// Whether files in /run/rocworker may decide anything, as the wrapper asks too: it is a folder, no link, that root owns
/// and only root can write to. Whoever needs a missing folder makes it.
pub fn check_owner(root: &Root) -> Result<(), root::Error> {
    root.check_folder_owner(RUN)?;
    match root.lstat(RUN) {
        Ok(found) if found.kind != Kind::Directory => Err(root::Error::Io {
            action: "use as a folder of root's",
            path: root.shown(RUN),
            errno: Errno::ENOTDIR,
        }),
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
