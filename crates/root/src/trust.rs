use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::fstat;
use nix::unistd::geteuid;

use crate::open::read_up_to;
use crate::{Error, Kind, Meta, Root};

/// The number of links that the kernel follows in one path (path_resolution(7)).
const MOST_LINKS: usize = 40;

impl Root {
    /// Reads a file that decides something: a config, a policy, a template, a CDI spec. It must be a regular
    /// file of root (or of the Root's owner, or of whoever runs this), which no other user can write. It reads the
    /// descriptor that it checks, so nothing can be put in its place in between.
    ///
    /// # Errors
    /// When the path is no such file, is not there, or is larger than `limit`.
    pub fn read_trusted(&self, path: impl AsRef<Path>, limit: usize) -> Result<Vec<u8>, Error> {
        let path = path.as_ref();
        let read = self.read_checked(path, limit);
        self.keep_read(path, &read);
        read
    }

    fn read_checked(&self, path: &Path, limit: usize) -> Result<Vec<u8>, Error> {
        let _reading = self.reading(path)?;
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_NOFOLLOW;
        let file = match self.open_at(path, flags) {
            Ok(file) => file,
            // The error of O_NOFOLLOW for a link at the end of the path (open(2)).
            Err(Errno::ELOOP) => {
                return Err(Error::NotAFile { path: self.shown(path), found: Kind::Link.described() });
            }
            Err(errno) => return Err(Error::io("open", self.shown(path), errno)),
        };
        let stat = fstat(&file).map_err(|errno| Error::io("stat", self.shown(path), errno))?;
        self.check_owner(path, &Meta::from_stat(&stat))?;
        read_up_to(&file, limit, || self.shown(path))
    }

    /// Whether files of this user may decide anything: root, the Root's owner, the program's user.
    #[must_use]
    pub fn is_trusted_owner(&self, uid: u32) -> bool {
        uid == 0 || uid == self.owner() || uid == geteuid().as_raw()
    }

    /// Checks that a folder belongs to a trusted owner, and that no other user can write to it. A missing folder
    /// passes.
    ///
    /// # Errors
    /// Says which attribute is wrong and how to put it right.
    pub fn check_folder_owner(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        match self.lstat(path) {
            Err(error) if error.is_not_found() => Ok(()),
            meta => self.check_owner_and_mode(path, &meta?, Kind::Directory),
        }
    }

    /// The end of a path, without links. `None` where a link on the way may be another user's: each folder
    /// that the walk passes has to be root's, and no other user may write to it. Then no other user can
    /// change the way before it is used. ostree has such links (`/usr/local`, `/opt`, `/home`). The target of a link
    /// has to exist.
    pub(crate) fn behind_roots_links(&self, path: &Path) -> Option<PathBuf> {
        let mut rest: VecDeque<OsString> = VecDeque::new();
        follow(path, &mut rest);
        let (mut place, mut links, mut of_link) = (PathBuf::from("/"), 0, 0_usize);
        while let Some(name) = rest.pop_front() {
            if !self.is_roots_alone(&self.lstat(&place).ok()?) {
                return None;
            }
            let is_of_link = of_link > 0;
            of_link = of_link.saturating_sub(1);
            if name == ".." {
                place.pop();
                continue;
            }
            place.push(name);
            match self.lstat(&place) {
                Ok(meta) if meta.kind == Kind::Link => {
                    links += 1;
                    if links > MOST_LINKS || !self.is_trusted_owner(meta.uid) {
                        return None;
                    }
                    let target = self.read_link(&place).ok()?;
                    if target.is_absolute() {
                        place = PathBuf::from("/");
                    } else {
                        place.pop();
                    }
                    of_link += follow(&target, &mut rest);
                }
                Ok(_) => {}
                Err(error) if error.is_not_found() && !is_of_link => {
                    place.extend(rest);
                    return Some(place);
                }
                Err(_) => return None,
            }
        }
        // A file is for its reader to judge.
        let is_others = |meta: &Meta| meta.kind == Kind::Directory && !self.is_roots_alone(meta);
        self.lstat(&place).is_ok_and(|meta| !is_others(&meta)).then_some(place)
    }

    /// Whether only root can change what is in a folder.
    fn is_roots_alone(&self, meta: &Meta) -> bool {
        meta.kind == Kind::Directory && self.is_trusted_owner(meta.uid) && meta.mode & 0o022 == 0
    }

    /// Checks that `path` is a regular file of a trusted owner, and that no other user can write to it.
    ///
    /// # Errors
    /// Says which attribute is wrong and how to put it right.
    pub fn check_owner(&self, path: &Path, meta: &Meta) -> Result<(), Error> {
        if meta.kind != Kind::Regular {
            return Err(Error::NotAFile { path: self.shown(path), found: meta.kind.described() });
        }
        self.check_owner_and_mode(path, meta, Kind::Regular)
    }

    fn check_owner_and_mode(&self, path: &Path, meta: &Meta, writable: Kind) -> Result<(), Error> {
        let problem = if !self.is_trusted_owner(meta.uid) {
            format!("belongs to uid {}, and only root's is believed: chown root", meta.uid)
        } else if meta.kind == writable && meta.mode & 0o022 != 0 {
            format!("can be written by others (mode {:04o}): chmod go-w", meta.mode)
        } else {
            return Ok(());
        };
        Err(Error::Attribute { path: self.shown(path), problem })
    }
}

/// Puts a path's names in front of those that are still to be walked; how many they are.
fn follow(path: &Path, rest: &mut VecDeque<OsString>) -> usize {
    let names: Vec<OsString> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect();
    let count = names.len();
    names.into_iter().rev().for_each(|name| rest.push_front(name));
    count
}
