//! Opens nodes as HIP does: for reading and writing.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use root::Root;

use crate::canary::kfd as interface;
use crate::canary::probe::named;
use crate::groups::Groups;

/// Where KFD's node is.
pub const KFD: &str = "/dev/kfd";

/// What came of a node: what it answered, or why it cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    pub path: PathBuf,
    /// KFD's version where it was asked, else nothing.
    pub answer: Result<Option<String>, String>,
}

/// Opens a node and lets it go again.
#[must_use]
pub fn node(root: &Root, path: &Path) -> Tried {
    let answer = opened(root, path).map(|_| None);
    Tried { path: path.to_owned(), answer }
}

/// Opens KFD's node and asks for the version of its interface, which only the driver itself can answer.
#[must_use]
pub fn kfd(root: &Root) -> Tried {
    let path = PathBuf::from(KFD);
    let answer = opened(root, &path).and_then(|file| {
        interface::version(&file).map(Some).map_err(|errno| {
            format!("opens, and what stands behind it does not answer as KFD does ({})", named(errno as i32))
        })
    });
    Tried { path, answer }
}

fn opened(root: &Root, path: &Path) -> Result<File, String> {
    let opened = OpenOptions::new().read(true).write(true).open(root.shown(path));
    opened.map_err(|error| {
        let errno = Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32));
        why_not(errno, || rights(root, path))
    })
}

/// What an errno of open(2) says about a container; `rights`: who may open the node.
fn why_not(errno: Errno, rights: impl Fn() -> String) -> String {
    let why = match errno {
        Errno::ENOENT => "is not there: the container was not given it".to_owned(),
        Errno::EACCES => format!("is {}, and this process is neither", rights()),
        Errno::EPERM => "is refused by the device cgroup: the container was not given it".to_owned(),
        Errno::ENXIO | Errno::ENODEV => {
            "has no driver behind it: see rocworker doctor on the worker".to_owned()
        }
        _ => "does not open".to_owned(),
    };
    format!("{why} ({})", named(errno as i32))
}

fn rights(root: &Root, path: &Path) -> String {
    match root.stat(path) {
        Ok(meta) => Groups::read(root).owner(&meta),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_is_told_in_words_that_lead_to_who_refused() {
        for (errno, said) in [
            (Errno::ENOENT, "is not there: the container was not given it (ENOENT, "),
            (Errno::EACCES, "is root:gid 992 0660, and this process is neither (EACCES, "),
            (Errno::EPERM, "is refused by the device cgroup: the container was not given it (EPERM, "),
            (Errno::ENXIO, "has no driver behind it: see rocworker doctor on the worker (ENXIO, "),
            (Errno::EMFILE, "does not open (EMFILE, "),
        ] {
            let told = why_not(errno, || "root:gid 992 0660".to_owned());
            assert!(told.starts_with(said), "{told}");
        }
    }
}
