//! The places that the daemon watches: what decides about the desired state, and what is managed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use config::{self, Config};
use engines::{ALL, Watched};
use host::unit::FOLDERS;
use reconcile::Store;
use root::{Identity, Root};

use super::watch::all_in;
use super::{LOCK, RECEIPT, SOCKET};
use crate::memory;

/// What is watched, as the machine is now.
pub fn places(root: &Root, config: Option<&Config>) -> BTreeSet<PathBuf> {
    let receipt = Path::new(reconcile::FOLDER).join(RECEIPT);
    // Lock and socket are made again where they are removed. An apply that changes nothing may change the memory alone.
    let files = [config::PATH, "/etc/group", "/dev/kfd", LOCK, SOCKET, memory::PATH].map(PathBuf::from);
    let mut found: BTreeSet<PathBuf> = files.into_iter().chain([receipt]).collect();
    found.extend(all_in(Path::new("/dev/dri")));
    if !root.is_host() {
        // The record of a captured machine's nodes.
        found.insert(Path::new("/").join(root::CAPTURE_FILE));
    }
    found.extend(render::overrides());
    // A look reports a receipt that it cannot read. Packages and modules have no path.
    let receipt = Store::new(root).receipt().unwrap_or_default();
    found.extend(receipt.entries.iter().filter_map(|entry| entry.path.path()).map(Path::to_owned));
    if let Some(config) = config {
        found.insert(config.cdi.path.clone());
        engines(root, config, &mut found);
    }
    found
}

/// What identifies the receipt's file: it changes with each new receipt. `None`: there is no receipt.
pub fn receipt(root: &Root) -> Option<Identity> {
    root.identity(Path::new(reconcile::FOLDER).join(RECEIPT)).ok()
}

/// What engines read, and the units that start them.
fn engines(root: &Root, config: &Config, found: &mut BTreeSet<PathBuf>) {
    let of_machine = |it: &str| it.starts_with("/etc") || it.starts_with("/run");
    for engine in &ALL {
        for (unit, folder) in engine.unit.iter().flat_map(|unit| FOLDERS.iter().map(move |it| (unit, it))) {
            if of_machine(folder) {
                found.insert(Path::new(folder).join(unit));
                found.extend(all_in(&Path::new(folder).join(format!("{unit}.d"))));
            }
        }
        for watched in (engine.watched)(root, config) {
            match watched {
                Watched::File(path) => drop(found.insert(path)),
                Watched::Folder(path) => found.extend(all_in(&path)),
            }
        }
    }
}
