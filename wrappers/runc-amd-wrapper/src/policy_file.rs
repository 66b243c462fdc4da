//! `/etc/rocworker/wrapper.json` as it is on the machine.

use std::path::{Path, PathBuf};

use allocation::policy::{self, Policy};

use lease::open;

const LIMIT: u64 = policy::LIMIT as u64;

/// The policy's file.
#[derive(Debug)]
pub enum PolicyFile {
    /// The file does not exist: the wrapper is plain runc.
    Absent,
    /// A user other than root could have written the file: the wrapper is plain runc, with this sentence as a
    /// warning.
    NotRoots(String),
    /// The file is root's and cannot be used, for this reason: every request for GPUs fails with it.
    Broken(String),
    Good(Policy),
}

/// Reads the policy whole.
pub fn load(path: &Path, owner: u32) -> PolicyFile {
    match open::trusted_text(path, LIMIT, owner) {
        Err(error) if error.is_absent() => PolicyFile::Absent,
        Err(error @ (open::Error::Foreign(_) | open::Error::NotRegular)) => {
            PolicyFile::NotRoots(not_roots(path, &error))
        }
        Err(error) if error.is_link() => PolicyFile::NotRoots(not_roots(path, &error)),
        Err(error) => PolicyFile::Broken(broken(path, &error)),
        Ok(text) => match Policy::parse(&text) {
            Ok(policy) => PolicyFile::Good(policy),
            Err(error) => PolicyFile::Broken(broken(path, &error)),
        },
    }
}

/// Only the runtime that the policy names: most of runc's subcommands need no more of it. `Some(None)` where
/// the policy names none or cannot be read; `None` where root has no policy.
pub fn runtime(path: &Path, owner: u32) -> Option<Option<PathBuf>> {
    let text = match open::trusted_text(path, LIMIT, owner) {
        Ok(text) => text,
        Err(error) if error.is_absent() || error.is_link() => return None,
        Err(open::Error::Foreign(_) | open::Error::NotRegular) => return None,
        Err(open::Error::NotText | open::Error::TooLong { .. } | open::Error::Io(_)) => return Some(None),
    };
    let runtime = policy::runtime(&text).map(PathBuf::from);
    // A relative one makes the whole policy unusable, and with that it names none.
    Some(runtime.filter(|path| path.is_absolute()))
}

fn not_roots(path: &Path, error: &open::Error) -> String {
    format!(
        "the policy {} {error}, and is taken for none: `chown root:root` and `chmod 0644` a file that root wrote; \
         in a user namespace without the machine's root the wrapper is always plain runc",
        path.display()
    )
}

fn broken(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!(
        "the policy {} cannot be used: {error}; correct it as docs/wrapper.md describes it",
        path.display()
    )
}
