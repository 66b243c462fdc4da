//! What mounts hide of the places where an engine may name the wrapper, whoever wrote that: a drop-in of docker's unit
//! beneath a mount would be seen by nobody, until dockerd, which was started by it, cannot start a container.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use reconcile::{Finding, UndoConstraints};
use root::Root;

use super::{ALL, unit};

/// Where the file systems are mounted that hold what may name the wrapper. A mount that shows its own folder is none.
#[must_use]
pub fn mounts(root: &Root, found: &UndoConstraints) -> BTreeSet<PathBuf> {
    let units =
        ALL.iter().filter(|engine| engine.names_programs_in.is_some()).filter_map(|engine| engine.unit);
    let of_unit = |name: &str| unit::FOLDERS.map(|folder| Path::new(folder).join(format!("{name}.d")));
    let of_programs =
        ALL.iter().filter_map(|engine| engine.names_programs_in).flat_map(|(_, folders)| folders);
    let places =
        found.namers.iter().cloned().chain(of_programs.map(PathBuf::from)).chain(units.flat_map(of_unit));
    let mounts: BTreeSet<PathBuf> = places.map(|place| root.mount_of(place)).collect();
    mounts.into_iter().filter(|mount| mount != Path::new("/")).collect()
}

/// What cannot be seen since the first apply, which found these file systems mounted.
#[must_use]
pub fn hidden(root: &Root, found: &UndoConstraints, at_first: &BTreeSet<PathBuf>) -> Vec<Finding> {
    let now = mounts(root, found);
    let shown = |mount: &Path| root.shown(mount).display().to_string();
    let came = now.difference(at_first).map(|mount| Finding {
        path: mount.as_path().into(),
        text: format!(
            "a file system mounted there since the first apply hides what is beneath: umount {}",
            shown(mount)
        ),
    });
    let went =
        at_first.difference(&now).filter(|mount| root.mount_of(mount) != **mount).map(|mount| Finding {
            path: mount.as_path().into(),
            text: format!("a file system was mounted at {} at the first apply: mount it", shown(mount)),
        });
    came.chain(went).collect()
}
