use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

/// Why a report was not written. What stood at the path stands there still.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{} exists: name another file with --file, or remove it", .0.display())]
    Exists(PathBuf),
    #[error("{} names no file", .0.display())]
    NoName(PathBuf),
    #[error("cannot {action} {}: {cause}", path.display())]
    Io { action: &'static str, path: PathBuf, cause: io::Error },
}

/// Writes a new file, whole or not at all, for its owner's eyes alone (0600).
///
/// # Errors
/// When something stands at the path already, and when it cannot be written; then no part of it stays.
pub fn new_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed = |action| move |cause| Error::Io { action, path: path.to_owned(), cause };
    let (Some(parent), Some(_)) = (path.parent(), path.file_name()) else {
        return Err(Error::NoName(path.to_owned()));
    };
    let folder = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let mut temporary = tempfile::Builder::new()
        .prefix(".rocworker-")
        .tempfile_in(folder)
        .map_err(failed("make a temporary file beside"))?;
    temporary.write_all(bytes).map_err(failed("write"))?;
    temporary.as_file().sync_all().map_err(failed("write"))?;
    temporary.persist_noclobber(path).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => Error::Exists(path.to_owned()),
        _ => Error::Io { action: "write", path: path.to_owned(), cause: error.error },
    })?;
    let folder_fd = open(folder, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty());
    folder_fd.and_then(nix::unistd::fsync).map_err(|errno| failed("sync the folder of")(errno.into()))
}
