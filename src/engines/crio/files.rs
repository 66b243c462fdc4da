//! CRI-O's configuration as it loads it: the main file, then every file of a folder and the folders in it, by their names
//! (`UpdateFromPath` of its pkg/config). It takes a file of any name for one of its own.

use std::path::{Path, PathBuf};

use root::{Kind, Root};

use crate::engines::glob::MOST;

/// The files, in their order.
pub(super) fn paths(root: &Root, main: &Path, folder: &Path) -> Vec<PathBuf> {
    // One that is named and not there is passed over.
    let mut found: Vec<PathBuf> = [main].iter().filter(|it| root.exists(it)).map(PathBuf::from).collect();
    below(root, folder, &mut found);
    found
}

fn below(root: &Root, folder: &Path, found: &mut Vec<PathBuf>) {
    let mut names = root.list(folder).unwrap_or_default();
    names.sort();
    for path in names.into_iter().map(|name| folder.join(name)) {
        let kind = root.lstat(&path).map(|meta| meta.kind);
        match kind {
            _ if found.len() >= MOST => return,
            Ok(Kind::Directory) => below(root, &path, found),
            Ok(_) => found.push(path),
            Err(_) => {}
        }
    }
}
