//! Folders that nobody but root can exchange for others.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use crate::open::check_who_may_write;

/// As many links as the kernel follows on one way (fs/namei.c, `MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

/// Checks a folder by its absolute path. It, all folders on the way from `/` and all links on it must be root's or
/// `owner`'s, and nobody else may write in the folders, so that the path goes on leading there. Above it a folder like
/// /tmp will do, in which nobody renames what is another's.
pub(crate) fn check(path: &Path, owner: u32) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    let check = |path: &Path, uid, mode| {
        let owner = if uid == 0 { 0 } else { owner };
        check_who_may_write(uid, mode, owner).map_err(|error| {
            io::Error::other(format!("{} {error}: only root may own it and write in it", path.display()))
        })
    };
    // From above: nobody else can change anything about what was checked.
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
