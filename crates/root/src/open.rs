use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::Mode;

use crate::{Error, inside};

/// More than a machine that mounts without pause needs: each try is some microseconds.
const RETRIES: u32 = 1000;

/// The open directory of a Root, and the one place where a path becomes a descriptor.
pub(crate) struct Directory {
    fd: OwnedFd,
    host: bool,
}

impl Directory {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |errno| Error::io("open", path.to_owned(), errno);
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let directory =
            Self { fd: openat(AT_FDCWD, path, flags, Mode::empty()).map_err(failed)?, host: is_slash(path) };
        if !directory.host {
            directory.open_at(Path::new("/"), OFlag::O_PATH).map_err(|errno| match errno {
                Errno::ENOSYS | Errno::EPERM => Error::Capture {
                    path: path.to_owned(),
                    problem: format!(
                        "reading beneath a directory needs openat2(2), and this kernel or its seccomp profile \
                         answers {errno}: use Linux 5.6 or later, or a container without that filter"
                    ),
                },
                other => failed(other),
            })?;
        }
        Ok(directory)
    }

    pub(crate) fn is_host(&self) -> bool {
        self.host
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
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
        if self.host && resolve.is_empty() {
            return openat(AT_FDCWD, path, flags, mode);
        }
        let beneath = inside(path);
        let beneath = if beneath.as_os_str().is_empty() { Path::new(".") } else { beneath };
        let how = OpenHow::new()
            .flags(flags)
            .mode(mode)
            .resolve(resolve | ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        // EAGAIN: a mount or rename somewhere on the system fell into the walk of a "..", so that the kernel
        // could not prove that it stayed inside (openat2(2)). Nothing is wrong with the path: walk again.
        let mut tries = 0;
        loop {
            match openat2(&self.fd, beneath, how) {
                Err(Errno::EAGAIN) if tries < RETRIES => tries += 1,
                other => return other,
            }
        }
    }
}

fn is_slash(path: &Path) -> bool {
    path.is_absolute() && path.components().count() == 1
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
            Err(errno) => {
                return Err(Error::io("read", shown(), errno));
            }
        }
        if bytes.len() > limit {
            return Err(Error::TooLarge { path: shown(), limit });
        }
    }
}
