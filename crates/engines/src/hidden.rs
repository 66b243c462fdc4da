//! What mounts hide of the places where an engine may name the wrapper, whoever wrote that: a drop-in of docker's unit
//! beneath a mount would be seen by nobody, until dockerd, which was started by it, cannot start a container.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use reconcile::{Finding, UndoConstraints};
use root::Root;

use super::{ALL, Containerd};
use host::unit::{self, drop_in_folders};

/// Mount points of the file systems that hold what may name the wrapper. A mount that shows its own folder is none.
#[must_use]
pub fn mounts(root: &Root, found: &UndoConstraints, containerd: Option<&Containerd>) -> BTreeSet<PathBuf> {
    let units =
        ALL.iter().filter(|engine| engine.names_programs_in.is_some()).filter_map(|engine| engine.unit);
    let of_unit = |name: &str| {
        let (own, of_kind) = drop_in_folders(name);
        let folders = own.into_iter().chain([of_kind]);
        folders.flat_map(|name| unit::FOLDERS.map(|folder| Path::new(folder).join(&name))).collect::<Vec<_>>()
    };
    let of_programs =
        ALL.iter().filter_map(|engine| engine.names_programs_in).flat_map(|(_, folders)| folders);
    let files = containerd.map_or(&[][..], |containerd| &containerd.files);
    let imported =
        files.iter().flat_map(|file| file.imports().into_iter().map(|import| beside(&file.path, &import)));
    let places = found.namers.iter().cloned().chain(of_programs.map(PathBuf::from)).chain(imported);
    // What is in /run is made anew at each boot, on a file system that an image has not.
    let places = places.chain(units.flat_map(of_unit)).filter(|place| !place.starts_with("/run"));
    // Links on the way are followed, whoever made them: the programs that read there follow them too.
    let mounts = places.map(|place| root.mount_of(root.without_links(&place).unwrap_or(place)));
    mounts.filter(|mount| mount != Path::new("/")).collect()
}

/// The folder of what a file imports, whose path may be relative to that file's folder.
fn beside(file: &Path, import: &str) -> PathBuf {
    let path = file.parent().unwrap_or(file).join(import);
    path.parent().unwrap_or(&path).to_owned()
}

/// What cannot be seen since the first apply, which found these file systems mounted.
#[must_use]
pub fn hidden(root: &Root, now: &BTreeSet<PathBuf>, at_first: &BTreeSet<PathBuf>) -> Vec<Finding> {
    let shown = |mount: &Path| root.shown(mount).display().to_string();
    let came = now.difference(at_first).map(|mount| Finding {
        path: mount.as_path().into(),
        text: format!(
            "a file system mounted there since the first apply hides what is beneath: umount {}",
            shown(mount)
        ),
    });
    let went =
        at_first.difference(now).filter(|mount| root.mount_of(mount) != **mount).map(|mount| Finding {
            path: mount.as_path().into(),
            text: format!("a file system was mounted at {} at the first apply: mount it", shown(mount)),
        });
    came.chain(went).collect()
}
