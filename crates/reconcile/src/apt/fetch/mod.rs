//! Files whose bytes come from elsewhere: fetched by apt's own helper, which knows the machine's proxies, and checked
//! before anything is done with them.

mod archive;
pub mod openpgp;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use nix::unistd::{User, chown};
use root::Root;

pub(crate) use archive::{ARCHIVE, FOLDER, RESERVE, sweep};

use crate::apt::{PackageManager, argv};
use crate::digest::Digest;

/// apt's program that fetches files (apt's cmdline/apt-helper.cc); it is in no folder of PATH.
const HELPER: &str = "/usr/lib/apt/apt-helper";

/// The user as whom apt fetches.
const SANDBOX: &str = "_apt";

/// A keyring is a few kibibytes.
const LIMIT: usize = 1 << 20;

/// The time limit for a small file, with apt's own retries.
const PATIENCE: Duration = Duration::from_secs(180);

/// How rocworker verifies a fetched file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// A keyring: the fingerprints of all primary keys that it may hold, in upper case without blanks.
    OpenPgp(Vec<String>),
    Sha256(Digest),
}

impl Check {
    /// Checks that a file may be used.
    ///
    /// # Errors
    /// A sentence on what is wrong with the file.
    pub fn holds(&self, file: &[u8]) -> Result<(), String> {
        match self {
            Self::OpenPgp(wanted) => {
                let found = openpgp::fingerprints(file)?;
                match found.iter().find(|it| !wanted.contains(it)) {
                    Some(other) => Err(format!(
                        "it holds the key {other}, which is not the one that is configured ({}): do not trust it before the \
                         owner of the repository confirms it",
                        wanted.join(", ")
                    )),
                    None => Ok(()),
                }
            }
            Self::Sha256(wanted) => wanted.check(&Digest::of(file)),
        }
    }

    /// The bytes as they are put in place.
    fn written(&self, file: Vec<u8>, path: &Path) -> Result<Vec<u8>, String> {
        match self {
            // apt recognizes armor by the name (apt-secure(8)).
            Self::OpenPgp(_) if path.extension().is_some_and(|it| it == "gpg") => {
                openpgp::binary(&file).map_err(str::to_owned)
            }
            _ => Ok(file),
        }
    }
}

impl PackageManager {
    /// Fetches and checks the file at `url`, in the form in which it is to be written to `path`.
    ///
    /// # Errors
    /// A sentence on why the file cannot be fetched, or is not the expected one.
    pub(crate) fn fetch(&self, url: &str, check: &Check, path: &Path) -> Result<Vec<u8>, String> {
        let (bytes, from) = if let Some(file) = local(url) {
            let bytes = Root::open(Path::new("/")).and_then(|root| root.read(file, LIMIT));
            (bytes.map_err(|error| error.to_string())?, file.display().to_string())
        } else {
            let folder = scratch()?;
            self.download(url, &folder.path().join("fetched"), LIMIT as u64, PATIENCE).map_err(|error| {
                format!(
                    "{url} could not be fetched: {error}; see that it can be reached from here (a proxy?), or put the file at \
                     {} yourself",
                    path.display()
                )
            })?;
            let from = format!("what came from {url}");
            let bytes = Root::open(folder.path()).and_then(|root| root.read("/fetched", LIMIT));
            (bytes.map_err(|error| format!("{from} cannot be read: {error}"))?, from)
        };
        check.holds(&bytes).map_err(|problem| format!("{from} is not used: {problem}"))?;
        check.written(bytes, path)
    }

    /// Fetches a file into a folder that apt's own user may write to. `most`: how many bytes it may have; a server that
    /// sends more is not listened to until the disk is full.
    pub(crate) fn download(
        &self,
        url: &str,
        file: &Path,
        most: u64,
        patience: Duration,
    ) -> Result<(), String> {
        let target = file.display().to_string();
        let size = format!("--fsize={most}");
        // apt-helper ends with the process that waits for it; otherwise it would continue and fill the disk.
        let start = ["setpriv", "--pdeathsig", "KILL", "prlimit", &size, HELPER];
        let timeouts = ["-o", "Acquire::http::Timeout=30", "-o", "Acquire::https::Timeout=30"];
        let what = ["-o", "Acquire::Retries=1", "download-file", url, &target];
        let argv = [&start[..], &argv(&self.proxy), &timeouts, &what].concat();
        self.run_for(&argv, patience, &mut |_| {}).map(drop).map_err(|error| {
            // The kernel ends who writes more (setrlimit(2)), of which apt says only that it has died.
            if size_of(file).is_some_and(|size| size >= most) {
                format!("it has more than {most} bytes, which is more than may come")
            } else {
                error
            }
        })
    }
}

/// `None` where it is not there.
fn size_of(file: &Path) -> Option<u64> {
    let meta = Root::open(file.parent()?).ok()?.lstat(Path::new("/").join(file.file_name()?)).ok()?;
    u64::try_from(meta.len).ok()
}

/// The file of this machine that a URL names. apt's helper would give a link to it instead of its bytes.
pub(crate) fn local(url: &str) -> Option<&Path> {
    let rest = url.strip_prefix("file:")?;
    let path = rest.strip_prefix("//").map_or(rest, |rest| rest.strip_prefix("localhost").unwrap_or(rest));
    path.starts_with('/').then(|| Path::new(path))
}

/// A folder for what is fetched, which goes with the value. apt fetches as a user of its own, where there is one.
fn scratch() -> Result<tempfile::TempDir, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no folder for what is fetched: {error}"))?;
    let prepared = || -> Result<(), Box<dyn std::error::Error>> {
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700))?;
        if let Some(user) = User::from_name(SANDBOX)? {
            chown(folder.path(), Some(user.uid), None)?;
        }
        Ok(())
    };
    prepared().map_err(|error| format!("{}: {error}", folder.path().display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_may_name_a_file_of_this_machine() {
        for (url, file) in [
            ("file:/srv/a.tar.gz", Some("/srv/a.tar.gz")),
            ("file:///srv/a.tar.gz", Some("/srv/a.tar.gz")),
            ("file://localhost/srv/a.tar.gz", Some("/srv/a.tar.gz")),
            ("file://elsewhere/srv/a.tar.gz", None),
            ("file:a.tar.gz", None),
            ("http://file:/a", None),
        ] {
            assert_eq!(local(url), file.map(Path::new), "{url}");
        }
    }
}
