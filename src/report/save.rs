use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

/// Writes a new file, whole or not at all, that only its owner can read (0600).
///
/// # Errors
/// When something is at the path already, and when it cannot be written; then no part of it stays.
pub fn new_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let failed = |action| move |cause: io::Error| anyhow!("cannot {action} {}: {cause}", path.display());
    path.file_name().with_context(|| format!("{} names no file", path.display()))?;
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new()
        .prefix(".rocworker-")
        .tempfile_in(folder)
        .map_err(failed("make a temporary file beside"))?;
    temporary.write_all(bytes).map_err(failed("write"))?;
    temporary.as_file().sync_all().map_err(failed("write"))?;
    temporary.persist_noclobber(path).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => {
            anyhow!("{} exists: name another file with --file, or remove it", path.display())
        }
        _ => failed("write")(error.error),
    })?;
    let folder_fd = open(folder, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty());
    folder_fd.and_then(nix::unistd::fsync).map_err(|errno| failed("sync the folder of")(errno.into()))
}
