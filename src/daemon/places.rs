//! Where something can change that decides what should be, or that should be as it is.

use std::path::Path;

use reconcile::{Receipt, Store};
use root::{Identity, Kind, Root};

use super::interests::Interests;
use super::{LOCK, SOCKET};
use crate::config::{self, Config};
use crate::engines::unit::FOLDERS;
use crate::engines::{ALL, Watched};
use crate::{memory, render};

/// Changed by whoever applies or undoes.
pub const RECEIPT: &str = "receipt.json";

/// Folders of templates are no deeper than this.
const DEPTH: usize = 3;

/// What is watched, as the machine is now.
pub fn places(root: &Root, config: Option<&Config>) -> Interests {
    let mut found = Interests::default();
    for path in [config::PATH, "/etc/group", "/dev/kfd"] {
        found.add(Path::new(path));
    }
    found.add_folder(Path::new("/dev/dri"));
    if !root.is_host() {
        // What stands for nodes in a captured machine.
        found.add(&Path::new("/").join(root::CAPTURE_FILE));
    }
    // Whoever removes them leaves a daemon that nobody finds.
    found.add(Path::new(LOCK));
    found.add(Path::new(SOCKET));
    found.add(&Path::new(reconcile::FOLDER).join(RECEIPT));
    // An apply by a configuration that changes nothing is in there alone.
    found.add(Path::new(memory::PATH));
    templates(root, Path::new(render::FOLDER), DEPTH, &mut found);
    // Of a receipt that cannot be read it is said where it matters.
    ours(&Store::new(root).receipt().unwrap_or_default(), &mut found);
    if let Some(config) = config {
        found.add(&config.cdi.path);
        engines(root, config, &mut found);
    }
    found
}

/// Which receipt stands there; `None`: none.
pub fn receipt(root: &Root) -> Option<Identity> {
    root.identity(Path::new(reconcile::FOLDER).join(RECEIPT)).ok()
}

fn templates(root: &Root, folder: &Path, depth: usize, found: &mut Interests) {
    found.add_folder(folder);
    for name in root.list(folder).unwrap_or_default() {
        let path = folder.join(name);
        if depth > 1 && root.lstat(&path).is_ok_and(|meta| meta.kind == Kind::Directory) {
            templates(root, &path, depth - 1, found);
        }
    }
}

/// Packages and modules are passed over.
fn ours(receipt: &Receipt, found: &mut Interests) {
    receipt.entries.iter().filter_map(|entry| entry.path.path()).for_each(|path| found.add(path));
}

/// What engines read, and the units that start them.
fn engines(root: &Root, config: &Config, found: &mut Interests) {
    let of_machine = |it: &str| it.starts_with("/etc") || it.starts_with("/run");
    for engine in &ALL {
        for (unit, folder) in engine.unit.iter().flat_map(|unit| FOLDERS.iter().map(move |it| (unit, it))) {
            if of_machine(folder) {
                found.add(&Path::new(folder).join(unit));
                found.add_folder(&Path::new(folder).join(format!("{unit}.d")));
            }
        }
        for watched in (engine.watched)(root, config) {
            match watched {
                Watched::File(path) => found.add(&path),
                Watched::Folder(path) => found.add_folder(&path),
            }
        }
    }
}
