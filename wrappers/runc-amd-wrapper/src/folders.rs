//! The folders of the machine that every container gets, as they are at this moment.
//!
//! # File systems that do not answer
//! A system call on a dead NFS server's file system comes back when that server does. So a thread asks for each folder, and
//! the wrapper leaves out what has no answer in time. Executing runc ends the thread: the kernel kills it, which the waits of
//! NFS, CIFS and Ceph allow (`TASK_KILLABLE`).
//!
//! FUSE does not, where its program has taken the request: `fuse_mounts` asks first whatever a thread is about to ask such a
//! file system.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use allocation::Quoted;
use allocation::bundle::{Bundle, Injection};
use allocation::container::is_kubernetes;
use allocation::folder::Folder;

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::io::Errno;

use crate::ask::{Question, no_answer};
use crate::config::Config;
use crate::fuse_mounts::Fuse;
use crate::log::Log;
use crate::paths::Paths;
use crate::rootfs::Rootfs;
use lease::open::check_who_may_write;

/// How many folders are mounted at most: runc makes each mount at every create.
const MOST: usize = 256;

/// The number of links that the kernel follows in one path (fs/namei.c, `MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

/// How long a create waits for its folders.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a create waits for each further folder once the patience is used up: an answer takes
/// microseconds.
const LEAST: Duration = Duration::from_millis(100);

/// After so many folders of a parent without an answer, no further folder of it is tried: they are likely of
/// one server.
const MOST_SILENT: usize = 3;

/// The input of a search for folders.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The policy's folders, whose subfolders are mounted.
    pub parents: &'a [String],
    pub paths: &'a Paths,
    pub log: &'a Log<'a>,
}

/// Mounts the folders in a bundle that gets nothing else. Whatever is wrong with them, or with the bundle, is a warning: no
/// container fails for it.
pub fn mount(search: Search<'_>, config: &Config) {
    if search.parents.is_empty() {
        return;
    }
    let path = config.path.display();
    let parsed =
        std::str::from_utf8(&config.bytes).map_err(|_| format!("its {path} is not UTF-8")).and_then(|text| {
            Bundle::parse(text).map_err(|error| format!("its {path} cannot be edited: {error}"))
        });
    match parsed {
        Ok(bundle) => mount_these(&search.folders(config, &bundle), config, &bundle, search.log),
        Err(reason) => not_mounted(&reason, search.log),
    }
}

/// Mounts folders that were found in a bundle that gets nothing else.
pub fn mount_these(folders: &[Folder], config: &Config, bundle: &Bundle<'_>, log: &Log<'_>) {
    let injection = Injection { folders, ..Injection::default() };
    let mounted = match bundle.edit(&injection, &mut |left_out| log.warn(left_out)) {
        // If another create of this bundle has replaced it meanwhile, that create has mounted the folders
        // itself.
        Ok(Some(text)) if !config.was_replaced() => config.replace(&text),
        Ok(_) => Ok(()),
        Err(error) => Err(format!("its {} cannot be edited: {error}", config.path.display())),
    };
    mounted.unwrap_or_else(|reason| not_mounted(&reason, log));
}

fn not_mounted(reason: &str, log: &Log<'_>) {
    log.warn(&format!("the policy's folders are not mounted: {reason}"));
}

impl Search<'_> {
    /// The folders directly beneath the parents, of each parent in the order of their names. A parent that is not there has
    /// none. Links, files and hidden names are no folders, and what runc could not mount is left out with a warning. So is a
    /// parent that others than root could exchange for another one before runc mounts what is in it. In a pod the scheduler
    /// decides: it has none.
    pub fn folders(&self, config: &Config, bundle: &Bundle<'_>) -> Vec<Folder> {
        let mut folders = Vec::new();
        if self.parents.is_empty() || is_kubernetes(bundle.annotation_keys()) {
            return folders;
        }
        let rootfs = Rootfs::of(config, bundle);
        let fuse = match Fuse::read(self.paths) {
            Ok(fuse) => Arc::new(fuse),
            Err(reason) => {
                not_mounted(&reason, self.log);
                return folders;
            }
        };
        let until = Instant::now() + PATIENCE;
        for parent in self.parents {
            if let Err(error) = self.add(parent, &rootfs, &fuse, until, &mut folders)
                && error.kind() != io::ErrorKind::NotFound
            {
                self.log.warn(&format!("the folders beneath {parent} are not mounted: {error}"));
            }
        }
        folders
    }

    fn add(
        &self,
        parent: &str,
        rootfs: &Rootfs,
        fuse: &Arc<Fuse>,
        until: Instant,
        folders: &mut Vec<Folder>,
    ) -> io::Result<()> {
        let warn = |name: &str, why: &str| {
            self.log.warn(&format!("the folder {} beneath {parent} is not mounted: {why}", Quoted(name)));
        };
        let (path, owner, mounts) = (PathBuf::from(parent), self.paths.lease.owner, Arc::clone(fuse));
        let (place, mut names) = ask(until, move || {
            let place = check_way(&path, owner, &mounts, until)?;
            mounts.check(&place, Question::Names, limit(until))?;
            let entries = std::fs::read_dir(&path)?;
            let names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
            Ok((place, names))
        })?;
        names.sort_unstable();
        let mut found = Vec::new();
        for name in names {
            match name.into_string() {
                Ok(name) => found.extend(Folder::beneath(parent, &name).map(|folder| (name, folder))),
                Err(name) => warn(&name.to_string_lossy(), "its name is not UTF-8"),
            }
        }
        let found: Arc<[(String, Folder)]> = found.into();
        let mut silent = 0;
        let mut answers = None;
        for (at, (name, _)) in found.iter().enumerate() {
            let answers_now = match answers.take() {
                Some(answers) => answers,
                None => examine_from(at, &found, &place, fuse, until)?,
            };
            let examined = answer(&answers_now, until);
            if examined.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
                silent += 1;
            } else {
                answers = Some(answers_now);
            }
            match examined {
                Ok(None) => {}
                // The folder may be gone meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Ok(Some(_)) if folders.len() == MOST => {
                    let why = format!(
                        "a container gets {MOST} at most, and what comes behind it is not mounted either"
                    );
                    warn(name, &why);
                    return Ok(());
                }
                Ok(Some(folder)) if rootfs.has_room(&folder.path) => folders.push(folder),
                Ok(Some(_)) => warn(name, "the container's root file system has no place for it"),
                Err(error) => warn(name, &error.to_string()),
            }
            let rest = found.get(at + 1..).unwrap_or_default();
            if silent == MOST_SILENT && !rest.is_empty() {
                let rest: Vec<String> = rest.iter().map(|(name, _)| Quoted(name).to_string()).collect();
                self.log.warn(&format!(
                    "no further folder beneath {parent} is mounted, since {MOST_SILENT} do not answer: {}",
                    rest.join(", ")
                ));
                return Ok(());
            }
        }
        Ok(())
    }
}

/// A thread that examines folders of a parent in their order, from one on; what it finds of each.
fn examine_from(
    first: usize,
    found: &Arc<[(String, Folder)]>,
    place: &Path,
    fuse: &Arc<Fuse>,
    until: Instant,
) -> io::Result<Receiver<io::Result<Option<Folder>>>> {
    let (found, place, fuse) = (Arc::clone(found), place.to_owned(), Arc::clone(fuse));
    let (answer, answers) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        for (name, folder) in found.iter().skip(first) {
            let checked = fuse.check(&place.join(name), Question::Kind, limit(until));
            let examined = checked.and_then(|()| examine(folder.clone()));
            // Another thread goes on where the answer comes late.
            if answer.send(examined).is_err() {
                return;
            }
        }
    })?;
    Ok(answers)
}

/// Asks a file system by `function`; an error where no answer comes in time.
fn ask<T: Send + 'static>(
    until: Instant,
    function: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (send, answers) = mpsc::channel();
    // The receiver is gone where the answer comes late.
    thread::Builder::new().spawn(move || drop(send.send(function())))?;
    answer(&answers, until)
}

fn answer<T>(answers: &Receiver<io::Result<T>>, until: Instant) -> io::Result<T> {
    let left = limit(until).saturating_duration_since(Instant::now());
    answers.recv_timeout(left).map_err(|_| no_answer())?
}

fn limit(until: Instant) -> Instant {
    until.max(Instant::now() + LEAST)
}

/// The folder with what its file system is mounted with; `None` where it is none.
fn examine(mut folder: Folder) -> io::Result<Option<Folder>> {
    if !Path::new(&folder.path).symlink_metadata()?.is_dir() {
        return Ok(None);
    }
    let flags = statvfs(&folder.path)?.f_flag;
    let all = [
        (StatVfsMountFlags::NOSUID, "nosuid"),
        (StatVfsMountFlags::NODEV, "nodev"),
        (StatVfsMountFlags::NOEXEC, "noexec"),
    ];
    folder.kept.extend(all.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, option)| *option));
    Ok(Some(folder))
}

/// Checks a folder by its absolute path. It, all folders on the way from `/` and all links on it must be root's or
/// `owner`'s. No other user may write in the folders, so that the path keeps leading there. Above it a folder like
/// /tmp will do, in which no user renames what is another's. Each FUSE file system on the way has to answer. Answers the
/// path without links.
fn check_way(path: &Path, owner: u32, fuse: &Fuse, until: Instant) -> io::Result<PathBuf> {
    const STICKY: u32 = 0o1000;
    let check = |path: &Path, uid, mode| {
        let owner = if uid == 0 { 0 } else { owner };
        check_who_may_write(uid, mode, owner).map_err(|error| {
            io::Error::other(format!("{} {error}: only root may own it and write in it", path.display()))
        })
    };
    // Folders are checked from the top down: no other user can then change a checked part.
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
            fuse.check(&checked, Question::Kind, limit(until))?;
            let found = checked.symlink_metadata()?;
            if found.is_symlink() {
                // A link's mode decides nothing.
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
            check(&checked, found.uid(), found.mode())?;
            return Ok(checked);
        };
        left = target;
    }
    Err(Errno::LOOP.into())
}
