//! Where something can change that decides what should be, or that should be as it is.

use std::path::Path;

use reconcile::{Receipt, Store};
use root::{Identity, Kind, Root};

use super::interests::Interests;
use super::{LOCK, SOCKET};
use crate::config::{self, Config};
use crate::engines::concourse::{self, Concourse};
use crate::engines::unit::{FOLDERS, Unit};
use crate::engines::{Containerd, Docker, Versions, containerd, docker};
use crate::{memory, render};

/// Changed by whoever applies or undoes.
pub const RECEIPT: &str = "receipt.json";

/// Where a person sets what applies to a worker whoever installed it (Concourse's own packages).
const WORKER_DEFAULTS: &str = "/etc/default/concourse";

/// Folders of templates are no deeper than this.
const DEPTH: usize = 3;

/// What is watched, as the machine is now.
#[must_use]
pub fn places(root: &Root, config: Option<&Config>) -> Interests {
    let mut found = Interests::default();
    for path in [config::PATH, "/etc/group", WORKER_DEFAULTS, "/dev/kfd"] {
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
#[must_use]
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
    for unit in [containerd::UNIT, docker::UNIT, concourse::UNIT] {
        for folder in
            FOLDERS.iter().map(Path::new).filter(|it| it.starts_with("/etc") || it.starts_with("/run"))
        {
            found.add(&folder.join(unit));
            found.add_folder(&folder.join(format!("{unit}.d")));
        }
    }
    if let Some(containerd) = Containerd::unasked(root, config) {
        found.add(&containerd.program);
        for file in &containerd.files {
            found.add(&file.path);
        }
        if let Some(folder) = containerd.files.first().and_then(|file| file.path.parent()) {
            found.add_folder(&folder.join("conf.d"));
        }
    }
    // None of their programs is run.
    let mut versions = Versions::new(root, None, std::collections::BTreeMap::new());
    if let Some(docker) = Docker::read(root, &config.docker.config, &mut versions).installed {
        found.add(&docker.program);
        found.add(&docker.config);
    }
    let unit = Unit::read(root, concourse::UNIT, Some(Path::new(concourse::DROP_IN)));
    for file in unit.ok().flatten().iter().flat_map(|unit| &unit.environment_files) {
        // One with wildcards is looked at by the slow timer.
        found.add(&file.path);
    }
    if let Some(worker) = Concourse::read(root, &mut versions).worker {
        found.add(&worker.bin.join("concourse"));
        found.add(&worker.bin.join("containerd"));
        if let Some((path, _)) = &worker.own_config {
            found.add(path);
        }
    }
}
