//! Writes a tree in memory as files beneath a directory.
#![allow(
    clippy::disallowed_methods,
    reason = "this makes the machine that a Root then reads: plain files in a fresh folder, nothing to keep atomic"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{Gid, Uid, chown};
use serde_json::{Value, json};

use crate::{Device, Entry, Error, Tree};

/// How the devices in `/dev` are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nodes {
    /// Made with mknod, owner, group and mode set. Needs root (CAP_MKNOD).
    Real,
    /// Written into `capture.json` at the top of the directory, the form in which a captured
    /// machine keeps them, so that an ordinary user can read such a machine:
    /// `{"schema_version":1,"nodes":[{"path":"/dev/kfd","type":"c","major":237,"minor":0,
    /// "mode":"0660","uid":0,"gid":992}]}`.
    Recorded,
    /// Left out, as on a machine without udev or in a container that was given none.
    None,
}

/// Writes a tree beneath `directory`, which is made if it is not there. What stands there
/// already stays, except for the tree's own paths.
///
/// # Errors
/// The first path that cannot be made, and why. What was written before it stays.
pub(crate) fn write(tree: &Tree, directory: &Path, nodes: Nodes) -> Result<(), Error> {
    fs::create_dir_all(directory).map_err(failed("make the folder", directory))?;
    let mut recorded = Vec::new();
    let mut made = BTreeSet::new();
    for (inside, entry) in tree.iter() {
        if inside.split('/').any(|part| part == "..") {
            return Err(Error::Path { path: inside.to_owned() });
        }
        let path = directory.join(inside);
        if let (Entry::Device(device), Nodes::Recorded) = (entry, nodes) {
            recorded.push(record(inside, *device));
            continue;
        }
        if matches!(entry, Entry::Device(_)) && nodes == Nodes::None {
            continue;
        }
        // A folder of sysfs holds dozens of files: asking for it once halves the system calls.
        if let Some(parent) = path.parent().filter(|parent| !made.contains(*parent)) {
            fs::create_dir_all(parent).map_err(failed("make the folder", parent))?;
            made.insert(parent.to_owned());
        }
        put(&path, entry)?;
    }
    if nodes == Nodes::Recorded {
        let path = directory.join("capture.json");
        let text = json!({ "schema_version": 1, "nodes": recorded });
        fs::write(&path, format!("{text:#}\n")).map_err(failed("write", &path))?;
    }
    Ok(())
}

fn put(path: &Path, entry: &Entry) -> Result<(), Error> {
    match entry {
        Entry::Directory => fs::create_dir_all(path).map_err(failed("make the folder", path)),
        Entry::File(bytes) => fs::write(path, bytes).map_err(failed("write", path)),
        Entry::Link(target) => symlink(target, path).map_err(failed("make the link", path)),
        Entry::Device(device) => make(path, *device).map_err(failed("make the device node", path)),
    }
}

fn make(path: &Path, device: Device) -> io::Result<()> {
    let number = makedev(u64::from(device.major), u64::from(device.minor));
    // No permission for anybody until the owner is set; mknod's own mode is subject to the umask.
    mknod(path, SFlag::S_IFCHR, Mode::empty(), number)?;
    chown(path, Some(Uid::from_raw(device.uid)), Some(Gid::from_raw(device.gid)))?;
    fs::set_permissions(path, fs::Permissions::from_mode(device.mode))
}

fn record(inside: &str, device: Device) -> Value {
    json!({
        "path": format!("/{inside}"),
        "type": "c",
        "major": device.major,
        "minor": device.minor,
        "mode": format!("{:04o}", device.mode),
        "uid": device.uid,
        "gid": device.gid,
    })
}

fn failed<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
    move |cause| Error::Io { action, path: path.to_owned(), cause }
}
