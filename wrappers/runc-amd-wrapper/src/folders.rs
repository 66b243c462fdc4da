//! The folders of the machine that every container gets, as they are at this moment.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use allocation::Quoted;
use allocation::bundle::{Bundle, Injection};
use allocation::container::is_kubernetes;
use allocation::folder::Folder;

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::io::Errno;

use crate::config::Config;
use crate::log::Log;
use crate::open::check_who_may_write;
use crate::rootfs::Rootfs;

/// Each is a mount that runc makes at every create.
const MOST: usize = 256;

/// As many links as the kernel follows on one way (fs/namei.c, `MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

/// Mounts the folders beneath these in a bundle that gets nothing else. Whatever is wrong with them, or with the bundle,
/// is a warning: no container fails for it.
pub fn mount(parents: &[String], config: &Config, owner: u32, log: &Log<'_>) {
    if parents.is_empty() {
        return;
    }
    let path = config.path.display();
    let mount = || -> Result<(), String> {
        let text = std::str::from_utf8(&config.bytes).map_err(|_| format!("its {path} is not UTF-8"))?;
        let unclear = |error| format!("its {path} cannot be edited: {error}");
        let bundle = Bundle::parse(text).map_err(unclear)?;
        // In a pod the scheduler decides.
        if is_kubernetes(bundle.annotation_keys()) {
            return Ok(());
        }
        let folders = beneath(parents, &Rootfs::of(config, &bundle), owner, log);
        let injection = Injection { folders: &folders, ..Injection::default() };
        match bundle.edit(&injection, &mut |left_out| log.warn(left_out)).map_err(unclear)? {
            // Where another create of this bundle has replaced it meanwhile, it has done the same, and perhaps more.
            Some(text) if !config.was_replaced() => config.replace(&text),
            _ => Ok(()),
        }
    };
    mount().unwrap_or_else(|reason| log.warn(&format!("the policy's folders are not mounted: {reason}")));
}

/// The folders directly beneath these, of each parent in the order of their names. A parent that is not there has none.
/// Links, files and hidden names are no folders, and what runc could not mount is left out with a warning. So is a parent
/// that others than root, or `owner`, could exchange for another one before runc mounts what is in it.
pub fn beneath(parents: &[String], rootfs: &Rootfs, owner: u32, log: &Log<'_>) -> Vec<Folder> {
    let mut folders = Vec::new();
    for parent in parents {
        if let Err(error) = add(parent, rootfs, owner, &mut folders, log)
            && error.kind() != io::ErrorKind::NotFound
        {
            log.warn(&format!("the folders beneath {parent} are not mounted: {error}"));
        }
    }
    folders
}

fn add(
    parent: &str,
    rootfs: &Rootfs,
    owner: u32,
    folders: &mut Vec<Folder>,
    log: &Log<'_>,
) -> io::Result<()> {
    check_way(Path::new(parent), owner)?;
    let warn = |name: &str, why: &str| {
        log.warn(&format!("the folder {} beneath {parent} is not mounted: {why}", Quoted(name)));
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(parent)? {
        let name = entry?.file_name();
        match name.into_string() {
            Ok(name) => names.push(name),
            Err(name) => warn(&name.to_string_lossy(), "its name is not UTF-8"),
        }
    }
    names.sort_unstable();
    for name in names {
        let Some(mut folder) = Folder::beneath(parent, &name) else { continue };
        match examine(&mut folder) {
            Ok(false) => {}
            // It may be gone meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(true) if folders.len() == MOST => {
                let why = format!(
                    "a container gets {MOST} at most, and what comes behind it is not mounted either"
                );
                warn(&name, &why);
                return Ok(());
            }
            Ok(true) if rootfs.has_room(&folder.path) => folders.push(folder),
            Ok(true) => warn(&name, "the container's root file system has no place for it"),
            Err(error) => warn(&name, &error.to_string()),
        }
    }
    Ok(())
}

/// Whether it is a folder, and what its file system is mounted with.
fn examine(folder: &mut Folder) -> io::Result<bool> {
    if !Path::new(&folder.path).symlink_metadata()?.is_dir() {
        return Ok(false);
    }
    let flags = statvfs(&folder.path)?.f_flag;
    let all = [
        (StatVfsMountFlags::NOSUID, "nosuid"),
        (StatVfsMountFlags::NODEV, "nodev"),
        (StatVfsMountFlags::NOEXEC, "noexec"),
    ];
    folder.kept.extend(all.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, option)| *option));
    Ok(true)
}

/// Checks a folder by its absolute path. It, all folders on the way from `/` and all links on it must be root's or
/// `owner`'s. No other user may write in the folders, so that the path keeps leading there. Above it a folder like
/// /tmp will do, in which no user renames what is another's.
fn check_way(path: &Path, owner: u32) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    let check = |path: &Path, uid, mode| {
        let owner = if uid == 0 { 0 } else { owner };
        check_who_may_write(uid, mode, owner).map_err(|error| {
            io::Error::other(format!("{} {error}: only root may own it and write in it", path.display()))
        })
    };
    // From above: no other user can change anything about what was checked.
    let mut checked = PathBuf::new();
    let mut left = path.to_owned();
    for _ in 0..=MOST_LINKS {
        let mut parts = left.components();
        let mut target = None;
        while let (Some(part), None) = (parts.next(), &target) {
            match part {
                Component::CurDir => continue,
                Component::ParentDir => drop(checked.pop()),
                part => checked.push(part),
            }
            let found = checked.symlink_metadata()?;
            if found.is_symlink() {
                // Its mode says nothing.
                check(&checked, found.uid(), 0)?;
                let link = std::fs::read_link(&checked)?;
                checked.pop();
                target = Some(link.join(parts.as_path()));
            } else {
                check(&checked, found.uid(), if found.mode() & STICKY != 0 { 0 } else { found.mode() })?;
            }
        }
        let Some(target) = target else {
            let found = checked.symlink_metadata()?;
            if !found.is_dir() {
                return Err(Errno::NOTDIR.into());
            }
            return check(&checked, found.uid(), found.mode());
        };
        left = target;
    }
    Err(Errno::LOOP.into())
}
