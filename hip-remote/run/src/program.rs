//! Which file a program's name means, and why it does not run.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::arguments::Failure;

/// As execvp(3) looks for it: a name with a slash is a path, another one stands in a folder of PATH.
pub(crate) fn found(name: &OsStr, path: &OsStr) -> Result<PathBuf, Failure> {
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    let folders = std::env::split_paths(path);
    let found = folders.map(|folder| folder.join(name)).find(|file| is_executable(file));
    found.ok_or_else(|| Failure {
        sentence: format!("{} is in no folder of PATH", Path::new(name).display()),
        code: 127,
    })
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// What execve(2) answered.
pub(crate) fn refused(name: &OsString, why: &std::io::Error) -> Failure {
    let code = if why.kind() == ErrorKind::NotFound { 127 } else { 126 };
    Failure { sentence: format!("{} cannot be executed: {why}", Path::new(name).display()), code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_slash_is_looked_for_in_path() {
        assert_eq!(found("sh".as_ref(), "/none:/usr/bin".as_ref()).unwrap(), Path::new("/usr/bin/sh"));
        assert_eq!(found("./sh".as_ref(), "".as_ref()).unwrap(), Path::new("./sh"));
        let failure = found("no-such-program".as_ref(), "/usr/bin".as_ref()).unwrap_err();
        assert_eq!(failure.code, 127);
        assert!(failure.sentence.contains("no-such-program is in no folder of PATH"));
    }
}
