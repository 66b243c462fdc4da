//! The folders of the machine that every container gets, as they are at this moment.

use std::path::Path;

use allocation::Quoted;
use allocation::bundle::{Bundle, Injection};
use allocation::container::is_kubernetes;
use allocation::folder::Folder;

use crate::config::Config;
use crate::log::Log;
use crate::open::c_string;
use crate::sys::{self, Begin, Errno, flag};

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
        let folders = beneath(parents, log);
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
/// Links, files and hidden names are no folders, and what cannot be mounted is left out with a warning.
pub fn beneath(parents: &[String], log: &Log<'_>) -> Vec<Folder> {
    let mut folders = Vec::new();
    for parent in parents {
        if let Err(errno) = add(parent, &mut folders, log)
            && errno != Errno::NOT_FOUND
        {
            let error = std::io::Error::from(errno);
            log.warn(&format!("the folders beneath {parent} cannot be listed, and are not mounted: {error}"));
        }
    }
    folders
}

fn add(parent: &str, folders: &mut Vec<Folder>, log: &Log<'_>) -> Result<(), Errno> {
    let opened = sys::open(&c_string(Path::new(parent))?, flag::DIRECTORY, 0)?;
    let mut names = Vec::new();
    for name in sys::names(&opened)? {
        match String::from_utf8(name) {
            Ok(name) => names.push(name),
            Err(_) => {
                log.warn(&format!("a folder beneath {parent} whose name is not UTF-8 is not mounted"));
            }
        }
    }
    names.sort_unstable();
    for name in names {
        let Some(mut folder) = Folder::beneath(parent, &name) else { continue };
        // It may be gone meanwhile.
        let found = c_string(Path::new(&name))
            .and_then(|name| sys::stat_no_follow_from(Begin::Folder(&opened), &name));
        if !found.is_ok_and(|found| found.is_folder()) {
            continue;
        }
        if folders.len() == MOST {
            log.warn(&format!(
                "{} beneath {parent} and what comes behind it are not mounted: a container gets {MOST} folders at most",
                Quoted(&name)
            ));
            return Ok(());
        }
        let flags = c_string(Path::new(&folder.path)).and_then(|path| sys::mount_flags(&path))?;
        for (flag, option) in
            [(sys::NO_SUID, "nosuid"), (sys::NO_DEVICES, "nodev"), (sys::NO_EXECUTION, "noexec")]
        {
            if flags & flag != 0 {
                folder.kept.push(option);
            }
        }
        folders.push(folder);
    }
    Ok(())
}
