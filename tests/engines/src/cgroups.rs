//! The cgroups of containers are this machine's own: no namespace keeps them apart.

use std::fs;
use std::path::{Path, PathBuf};

const CGROUPS: &str = "/sys/fs/cgroup";

/// Removes what a test's containers left, in every hierarchy: by then no process is in them.
pub fn remove(name: &str) {
    for folder in of(name) {
        remove_with_all_below(&folder);
    }
}

/// The folders with this name, one in each hierarchy (cgroup v1, v2, or both at once).
pub fn of(name: &str) -> Vec<PathBuf> {
    let hierarchies = fs::read_dir(CGROUPS).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = hierarchies.chain([PathBuf::from(CGROUPS)]).map(|hierarchy| hierarchy.join(name));
    folders.filter(|folder| folder.is_dir()).collect()
}

/// A cgroup is a folder whose files go with it.
fn remove_with_all_below(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_with_all_below(&entry.path());
        }
    }
    // A cgroup that is still in use stays: nobody is left to report it to.
    let _ = fs::remove_dir(folder);
}
