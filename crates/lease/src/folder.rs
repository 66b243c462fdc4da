//! Makes, opens and checks the folders of `/run/rocworker`.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::open::{check_who_may_write, failed};

/// The mode of `/run/rocworker`: other programs of this product publish there what every user may read.
pub(crate) const READABLE: u32 = 0o755;
/// The mode of a folder in it, which no other user can open or lock.
pub(crate) const ROOTS_ALONE: u32 = 0o700;

/// Makes a folder of this mode where it is missing, checks it, takes away what its mode has beyond that, and answers it,
/// open.
pub(crate) fn ensure(folder: &Path, mode: u32, owner: u32) -> Result<File, String> {
    let failed = |attempt| move |error: io::Error| failed("the folder", folder, attempt, error);
    // The folder is mostly there.
    let opened = match open(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            match DirBuilder::new().mode(mode).create(folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed("made")(error)),
                _ => open(folder),
            }
        }
        opened => opened,
    };
    let opened = opened.map_err(failed("opened"))?;
    if check(folder, &opened, owner)? & 0o777 & !mode != 0 {
        opened.set_permissions(Permissions::from_mode(mode)).map_err(failed("closed to others"))?;
    }
    Ok(opened)
}

/// Opens a folder that is no link.
pub(crate) fn open(folder: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?.into())
}

/// A folder that is root's and in which no other user may write; answers its mode.
pub(crate) fn check(folder: &Path, opened: &File, owner: u32) -> Result<u32, String> {
    let found = opened.metadata().map_err(|error| failed("the folder", folder, "read", error))?;
    check_who_may_write(found.uid(), found.mode(), owner)
        .map_err(|error| failed("the folder", folder, "opened", error))?;
    Ok(found.mode())
}
