//! Files that the web-config file names: no other user may exchange one, by its bytes or by a link or folder on the way to it.
//!
//! A link is usual there. certbot's `live/NAME/fullchain.pem` is one, and Kubernetes mounts a secret's files as links.

use std::path::{Component, Path, PathBuf};

use root::{Error, Kind, Meta, Root};

/// The number of links that the kernel follows in one path (fs/namei.c, `MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

/// Reads a file by its absolute path, links followed.
///
/// # Errors
/// The file cannot be read, or a user other than root and this program's own could exchange it.
pub(super) fn read_believed(root: &Root, path: &Path, limit: usize) -> Result<Vec<u8>, Error> {
    root.read_trusted(without_links(root, path)?, limit)
}

/// The path without links, whose every folder and link is believed. From above: no other user can change anything about what
/// was checked.
fn without_links(root: &Root, path: &Path) -> Result<PathBuf, Error> {
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
            let found = root.lstat(&checked).map_err(|error| match error {
                Error::Io { path, errno, .. } => Error::Io { action: "open", path, errno },
                error => error,
            })?;
            match found.kind {
                Kind::Link => {
                    check_owner(root, &checked, &found)?;
                    let link = root.read_link(&checked)?;
                    checked.pop();
                    target = Some(link.join(parts.as_path()));
                }
                Kind::Directory => check_owner(root, &checked, &found)?,
                // The file itself: it is checked when it is open.
                _ => {}
            }
        }
        match target {
            Some(target) => left = target,
            None => return Ok(checked),
        }
    }
    Err(Error::NotAFile { path: root.shown(path), found: Kind::Link.described() })
}

/// Checks that only root, or the user who runs this program, can exchange a folder or link. A folder like /tmp passes:
/// there no user can rename another user's file.
fn check_owner(root: &Root, path: &Path, found: &Meta) -> Result<(), Error> {
    const STICKY: u32 = 0o1000;
    let problem = if !root.is_trusted_owner(found.uid) {
        format!("belongs to uid {}, who could exchange the file: chown root", found.uid)
    } else if found.kind == Kind::Directory && found.mode & 0o022 != 0 && found.mode & STICKY == 0 {
        format!("can be written by others (mode {:04o}), who could exchange the file: chmod go-w", found.mode)
    } else {
        return Ok(());
    };
    Err(Error::Attribute { path: root.shown(path), problem })
}
