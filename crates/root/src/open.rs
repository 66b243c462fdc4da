use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::Mode;

use crate::{Error, Root, inside};

/// The most tries of an open: even a machine that mounts without pause needs fewer, and each takes some
/// microseconds.
const RETRIES: u32 = 1000;

/// The one place where a path becomes a descriptor.
impl Root {
    /// `action`: what the caller opens the file for.
    pub(crate) fn open_file(
        &self,
        action: &'static str,
        path: &Path,
        flags: OFlag,
    ) -> Result<OwnedFd, Error> {
        self.open_at(path, flags).map_err(|errno| Error::io(action, self.shown(path), errno))
    }

    /// Opens a path that begins at the Root. Beneath `/` the kernel's ordinary walk is the right one, and
    /// one system call cheaper to follow in a trace; elsewhere links are resolved inside.
    pub(crate) fn open_at(&self, path: &Path, flags: OFlag) -> Result<OwnedFd, Errno> {
        self.open_with(path, flags, Mode::empty(), ResolveFlag::empty())
    }

    pub(crate) fn open_with(
        &self,
        path: &Path,
        flags: OFlag,
        mode: Mode,
        resolve: ResolveFlag,
    ) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlag::O_CLOEXEC;
        if self.is_host && resolve.is_empty() {
            return openat(AT_FDCWD, path, flags, mode);
        }
        let beneath = inside(path);
        let beneath = if beneath.as_os_str().is_empty() { Path::new(".") } else { beneath };
        let how = OpenHow::new()
            .flags(flags)
            .mode(mode)
            .resolve(resolve | ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        // EAGAIN: a mount or rename somewhere on the system fell into the walk of a "..". So the kernel
        // could not prove that it stayed inside (openat2(2)). Nothing is wrong with the path: walk again.
        let mut tries = 0;
        loop {
            match openat2(&self.dir, beneath, how) {
                Err(Errno::EAGAIN) if tries < RETRIES => tries += 1,
                other => return other,
            }
        }
    }
}

/// Opens a file in a folder to be read. It follows no link, and does not wait for a fifo's writer.
pub(crate) fn open_in(folder: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}

/// Reads to the end, or to one byte past `limit`, which is then an error.
pub(crate) fn read_up_to(
    file: &OwnedFd,
    limit: usize,
    shown: impl Fn() -> PathBuf,
) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    // A sysfs attribute is at most one page (fs/sysfs/file.c): one read, and one that says it was the end.
    let mut chunk = [0_u8; 4096];
    loop {
        match nix::unistd::read(file, &mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(n) => bytes.extend_from_slice(chunk.get(..n).unwrap_or(&chunk)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(Error::io("read", shown(), errno)),
        }
        if bytes.len() > limit {
            return Err(Error::TooLarge { path: shown(), limit });
        }
    }
}
