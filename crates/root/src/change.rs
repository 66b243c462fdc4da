//! The calls of the kernel that change what is beneath a Root. A run can be killed before each: a crash point.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::stat::{Mode, fchmod, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, fsync, unlinkat, write};
use rustix::fs::{RenameFlags, renameat_with};

use crate::Root;
use crate::error::of_rustix;

/// A hook that a test passes in to fail or crash at a change; the program passes none.
pub(crate) type OnChange = Box<dyn Fn(&'static str, &Path) + Send + Sync>;

/// `path`: what the caller changes, whatever name the call has for it. A folder is named by its descriptor.
impl Root {
    /// Calls `hook` before each call of the kernel that changes a file, a link, a node or a folder. It gets the call's
    /// name and the path. What is on disk at that moment is what kill -9 leaves.
    #[must_use]
    pub fn on_change(mut self, hook: impl Fn(&'static str, &Path) + Send + Sync + 'static) -> Self {
        self.on_change = Some(Box::new(hook));
        self
    }

    pub(crate) fn crash_point(&self, call: &'static str, path: &Path) {
        if let Some(hook) = &self.on_change {
            hook(call, path);
        }
    }

    pub(crate) fn unlink(&self, path: &Path, folder: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
        self.crash_point("unlinkat", path);
        unlinkat(folder, name, UnlinkatFlags::NoRemoveDir)
    }

    pub(crate) fn rename(
        &self,
        path: &Path,
        from: (&OwnedFd, &OsStr),
        to: (&OwnedFd, &OsStr),
        how: RenameFlags,
    ) -> Result<(), Errno> {
        self.crash_point("renameat2", path);
        // rustix's: nix has it for glibc only.
        renameat_with(from.0, from.1, to.0, to.1, how).map_err(of_rustix)
    }

    pub(crate) fn mkdir(&self, path: &Path, above: &OwnedFd, name: &OsStr, mode: Mode) -> Result<(), Errno> {
        self.crash_point("mkdirat", path);
        mkdirat(above, name, mode)
    }

    pub(crate) fn write_all(&self, path: &Path, file: &OwnedFd, bytes: &[u8]) -> Result<(), Errno> {
        let mut rest = bytes;
        while !rest.is_empty() {
            self.crash_point("write", path);
            match write(file.as_fd(), rest) {
                Ok(0) => return Err(Errno::ENOSPC),
                Ok(n) => rest = rest.get(n..).unwrap_or_default(),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    pub(crate) fn chown(&self, path: &Path, file: &OwnedFd, owner: (u32, u32)) -> Result<(), Errno> {
        self.crash_point("fchown", path);
        fchown(file, Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1)))
    }

    pub(crate) fn chmod(&self, path: &Path, file: &OwnedFd, mode: u32) -> Result<(), Errno> {
        self.crash_point("fchmod", path);
        fchmod(file, Mode::from_bits_truncate(mode))
    }

    pub(crate) fn fsync(&self, path: &Path, file: &OwnedFd) -> Result<(), Errno> {
        self.crash_point("fsync", path);
        fsync(file)
    }
}
