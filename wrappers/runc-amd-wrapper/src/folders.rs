//! The folders of the machine that every container gets, as they are at this moment.

use std::ffi::CStr;
use std::io;
use std::path::{Path, PathBuf};

use allocation::Quoted;
use allocation::bundle::{Bundle, Injection};
use allocation::container::is_kubernetes;
use allocation::folder::Folder;
use allocation::gids::UserNamespace;

use crate::config::Config;
use crate::log::Log;
use crate::open::c_string;
use crate::sys::{self, Begin, Errno, Fd, flag};

/// Each is a mount that runc makes at every create.
const MOST: usize = 256;

/// Mounts the folders beneath these in a bundle that gets nothing else. Whatever is wrong with them, or with the bundle,
/// is a warning: no container fails for it.
pub fn mount(parents: &[String], config: &Config, log: &Log<'_>) {
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
        let folders = beneath(parents, config, &bundle, log);
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
/// Links, files and hidden names are no folders, and what runc could not mount is left out with a warning.
pub fn beneath(parents: &[String], config: &Config, bundle: &Bundle<'_>, log: &Log<'_>) -> Vec<Folder> {
    let mut folders = Vec::new();
    if parents.is_empty() {
        return folders;
    }
    let rootfs = Rootfs {
        // As seen from the bundle.
        path: config.path.with_file_name(bundle.rootfs().as_deref().unwrap_or_default()),
        namespace: bundle.user_namespace().unwrap_or(UserNamespace::Host),
    };
    for parent in parents {
        if let Err(errno) = add(parent, &rootfs, &mut folders, log)
            && errno != Errno::NOT_FOUND
        {
            log.warn(&format!("the folders beneath {parent} are not mounted: {}", io::Error::from(errno)));
        }
    }
    folders
}

fn add(parent: &str, rootfs: &Rootfs, folders: &mut Vec<Folder>, log: &Log<'_>) -> Result<(), Errno> {
    let opened = sys::open(&c_string(Path::new(parent))?, flag::DIRECTORY, 0)?;
    let warn = |name: &str, why: &str| {
        log.warn(&format!("the folder {} beneath {parent} is not mounted: {why}", Quoted(name)));
    };
    let mut names = Vec::new();
    for name in sys::names(&opened)? {
        let name = String::from_utf8(name).unwrap_or_else(|name| {
            let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
            warn(&name, "its name is not UTF-8");
            // Hidden.
            ".".to_owned()
        });
        names.push(name);
    }
    names.sort_unstable();
    for name in names {
        let Some(mut folder) = Folder::beneath(parent, &name) else { continue };
        match examine(&opened, &name, &mut folder) {
            // It may be gone meanwhile.
            Ok(false) | Err(Errno::NOT_FOUND) => {}
            Ok(true) if folders.len() == MOST => {
                let why = format!(
                    "a container gets {MOST} at most, and what comes behind it is not mounted either"
                );
                warn(&name, &why);
                return Ok(());
            }
            Ok(true) if rootfs.has_room(&folder.path) => folders.push(folder),
            Ok(true) => warn(&name, "the container's root file system has no place for it"),
            Err(errno) => warn(&name, &io::Error::from(errno).to_string()),
        }
    }
    Ok(())
}

/// Whether it is a folder, and what its file system is mounted with.
fn examine(parent: &Fd, name: &str, folder: &mut Folder) -> Result<bool, Errno> {
    if !sys::stat_no_follow_from(Begin::Folder(parent), &c_string(Path::new(name))?)?.is_folder() {
        return Ok(false);
    }
    let flags = sys::mount_flags(&c_string(Path::new(&folder.path))?)?;
    let all = [(sys::NO_SUID, "nosuid"), (sys::NO_DEVICES, "nodev"), (sys::NO_EXECUTION, "noexec")];
    folder.kept.extend(all.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, option)| *option));
    Ok(true)
}

/// The container's files, and for whom they are.
struct Rootfs {
    path: PathBuf,
    namespace: UserNamespace,
}

impl Rootfs {
    /// Whether runc finds a folder at this path, or can make it: not through a file, nor where the file system is
    /// mounted read-only or belongs to users that the container does not have. Where a link leads is for runc to see.
    fn has_room(&self, path: &str) -> bool {
        let mut place = self.path.clone();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let parent = place.clone();
            place.push(part);
            match c_string(&place).and_then(|place| sys::stat_no_follow(&place)) {
                Ok(found) if found.is_folder() => {}
                Ok(found) => return !found.is_regular(),
                Err(_) => return c_string(&parent).is_ok_and(|parent| self.can_be_written(&parent)),
            }
        }
        true
    }

    /// By the container's root, whose capabilities reach as far as its user namespace (capabilities(7)). What cannot be
    /// seen from here may be so.
    fn can_be_written(&self, folder: &CStr) -> bool {
        let (Ok(flags), Ok(found)) = (sys::mount_flags(folder), sys::stat_no_follow(folder)) else {
            return true;
        };
        let is_its = matches!(self.namespace, UserNamespace::Joined { .. })
            || self.namespace.uid(found.uid).is_some() && self.namespace.gid(found.gid).is_some();
        flags & sys::READ_ONLY == 0 && (is_its || found.mode & 0o002 != 0)
    }
}
