//! The container of a call, and what is known of it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use allocation::Render;
use allocation::document::Document as _;
use allocation::record::Record;

use crate::environment::Environment;
use crate::log::Log;
use crate::paths::Paths;
use lease::lease_file::Leases;
use lease::reap::creator_lives;
use lease::runtime_state;
use lease::store::{self, Key, valid_id};

/// A container: runc's state folder and its id there.
#[derive(Debug)]
pub struct Container<'a> {
    root: PathBuf,
    id: &'a str,
}

impl<'a> Container<'a> {
    /// `None` where the id is one that runc refuses, or the folder's path no text.
    pub fn of(
        root: Option<&[u8]>,
        id: &'a [u8],
        environment: &Environment<'_>,
        paths: &Paths,
    ) -> Option<Self> {
        Some(Self { root: state_root(root, environment, paths)?, id: valid_id(id)? })
    }

    pub fn key(&self) -> Key<'_> {
        Key { root: &self.root, id: self.id }
    }

    /// Whether the runtime's state names a first process that lives: then the container exists, and the
    /// runtime refuses to make another one.
    pub fn lives(&self, paths: &Paths) -> bool {
        runtime_state::init_of(&self.root, self.id).is_some_and(|init| init.is_alive(&paths.lease.proc))
    }

    /// Whether a record is about the container that runc has under this id now. An earlier container's delete
    /// and create may have bypassed the wrapper; the runtime's own state shows the nodes.
    pub fn has_nodes_of(&self, record: &Record) -> bool {
        runtime_state::has_nodes(&self.root, self.id, record.gpus.iter().map(|gpu| gpu.render))
    }

    /// Whether the container has a record of a grant.
    pub fn has_record(&self, paths: &Paths) -> bool {
        !matches!(store::records(&paths.lease, None).read(&self.key().file_name()), Ok(None))
    }

    /// Whether the container has a lease on this GPU, alive or dead.
    pub fn has_lease(&self, render: Render, paths: &Paths) -> bool {
        Leases::of(&paths.lease, None).is_holder(render, &self.root, self.id)
    }

    /// Removes the record if runc will remove the container. The record stays for a container that lives,
    /// which runc refuses to delete without `--force`, and for one that is being created. The next decision
    /// clears away a record that stayed by mistake. It also clears away the record of a container with
    /// leases, together with the leases: until then the record shows a later container of this id that the
    /// leases are not its own.
    pub fn forget(&self, force: bool, paths: &Paths, log: &Log<'_>) {
        let records = store::records(&paths.lease, None);
        let name = self.key().file_name();
        let Ok(Some(text)) = records.read(&name) else { return };
        let record = Record::parse(&text);
        let leased = |record: &Record| record.gpus.iter().any(|gpu| self.has_lease(gpu.render, paths));
        if record.as_ref().is_ok_and(leased) {
            return;
        }
        let being_created = record.is_ok_and(|record| creator_lives(&record, &paths.lease));
        let can_be_deleted = || !self.lives(paths) || runtime_state::waits_for_start(&self.root, self.id);
        if force || (!being_created && can_be_deleted()) {
            records.remove(&name).unwrap_or_else(|error| log.warn(&error));
        }
    }
}

/// runc's `--root`, made absolute as runc does; without it `/run/runc`, or for a user who is not root
/// and in a user namespace `$XDG_RUNTIME_DIR/runc` (runc's `main.go` and `rootless_linux.go`).
fn state_root(given: Option<&[u8]>, environment: &Environment<'_>, paths: &Paths) -> Option<PathBuf> {
    if let Some(given) = given {
        let given = Path::new(OsStr::from_bytes(given));
        let absolute =
            if given.is_absolute() { given.to_owned() } else { std::env::current_dir().ok()?.join(given) };
        return Some(lexically_clean(&absolute));
    }
    let of_user = environment.get("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    match of_user {
        Some(folder) if honours_xdg(environment, paths) => Some(Path::new(folder).join("runc")),
        _ => Some(PathBuf::from("/run/runc")),
    }
}

fn honours_xdg(environment: &Environment<'_>, paths: &Paths) -> bool {
    environment.effective_user != 0
        || in_user_namespace(&paths.lease.proc) && environment.get("USER").is_none_or(|user| user != "root")
}

/// The first user namespace maps every id to itself.
fn in_user_namespace(proc: &Path) -> bool {
    std::fs::read_to_string(proc.join("self/uid_map"))
        .is_ok_and(|map| !map.split_ascii_whitespace().eq(["0", "0", "4294967295"]))
}

/// Removes `.`, `..` and doubled slashes as Go's `filepath.Clean` does: links are not followed.
fn lexically_clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => drop(clean.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_folder_is_the_one_that_runc_takes() {
        let cwd = std::env::current_dir().unwrap();
        let cwd = cwd.to_str().unwrap();
        let under = |path: &str| format!("{cwd}{path}");
        let proc = tempfile::tempdir().unwrap();
        std::fs::create_dir(proc.path().join("self")).unwrap();
        let paths = Paths {
            lease: lease::paths::Paths { proc: proc.path().to_owned(), ..lease::paths::Paths::system() },
            ..Paths::system()
        };
        let (host, inside) = ("         0          0 4294967295\n", "0 100000 65536\n");
        for (given, variables, user, map, expected) in [
            (Some("/run/x"), &[][..], 0, host, "/run/x".to_owned()),
            (Some("/run//./x/../y/"), &[], 0, host, "/run/y".to_owned()),
            (Some("r/../s"), &[], 0, host, under("/s")),
            (Some(""), &[], 0, host, under("")),
            (None, &[], 0, host, "/run/runc".to_owned()),
            (None, &["XDG_RUNTIME_DIR=/run/user/0"], 0, host, "/run/runc".to_owned()),
            (None, &["XDG_RUNTIME_DIR=/run/user/7"], 7, host, "/run/user/7/runc".to_owned()),
            (None, &["XDG_RUNTIME_DIR="], 7, host, "/run/runc".to_owned()),
            (None, &["XDG_RUNTIME_DIR=/x"], 0, inside, "/x/runc".to_owned()),
            (None, &["XDG_RUNTIME_DIR=/x", "USER=root"], 0, inside, "/run/runc".to_owned()),
        ] {
            std::fs::write(proc.path().join("self/uid_map"), map).unwrap();
            let entries: Vec<&[u8]> = variables.iter().map(|v| v.as_bytes()).collect();
            let environment = Environment { entries: &entries, effective_user: user };
            let root = state_root(given.map(str::as_bytes), &environment, &paths).unwrap();
            assert_eq!(root, Path::new(&expected), "{given:?} {variables:?} {user}");
        }
    }
}
