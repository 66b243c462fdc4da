//! Tells which build of this program runs, and whether an upgrade has put another build at its path: that build then
//! maintains the machine.

use std::path::{Path, PathBuf};

use nix::sys::stat::stat;

/// What the kernel adds to the path of a program whose file was removed (proc(5)).
const GONE: &str = " (deleted)";

#[derive(Debug)]
pub struct Build {
    path: PathBuf,
    /// Device and inode; `None`: the program's file had gone by the start.
    identity: Option<(u64, u64)>,
}

impl Build {
    /// The one that runs; `None` where the kernel does not say which that is.
    pub fn running() -> Option<Self> {
        std::env::current_exe().ok().map(|path| Self::at(&path))
    }

    fn at(path: &Path) -> Self {
        let before = path.to_str().and_then(|path| path.strip_suffix(GONE));
        let identity = if before.is_some() { None } else { identity(path) };
        Self { path: before.map_or_else(|| path.to_owned(), PathBuf::from), identity }
    }

    /// The path at which there is another build now. A program that is gone has no successor: this one runs on while it
    /// maintains anything.
    pub fn replaced(&self) -> Option<&Path> {
        let now = identity(&self.path)?;
        (self.identity != Some(now)).then_some(self.path.as_path())
    }

    /// The path at which there is no program any more.
    pub fn gone(&self) -> Option<&Path> {
        identity(&self.path).is_none().then_some(self.path.as_path())
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    stat(path).ok().map(|found| (found.st_dev, found.st_ino))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out files"
)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_was_put_in_its_place_is_another_build_and_a_missing_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let (path, new) = (dir.path().join("rocworker"), dir.path().join("new"));
        fs::write(&path, "one").unwrap();
        let build = Build::at(&path);
        assert_eq!(build.replaced(), None);
        fs::write(&new, "other").unwrap();
        fs::rename(&new, &path).unwrap();
        assert_eq!(build.replaced(), Some(path.as_path()));
        let late = Build::at(Path::new(&format!("{}{GONE}", path.display())));
        assert_eq!(late.replaced(), Some(path.as_path()), "it had gone before it was asked for");
        assert_eq!(build.gone(), None);
        fs::remove_file(&path).unwrap();
        assert_eq!((build.replaced(), build.gone()), (None, Some(path.as_path())));
    }
}
