//! What makes this process the machine's daemon: it holds the lock, and answers at the socket. Both lie in
//! /run/rocworker, which a person or a cleaner may remove while it runs.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::Duration;

use root::{Attributes, Lock, Root};

use super::socket::listener;
use super::{LOCK, SOCKET};
use crate::run_folder::{RUN, check_owner};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("another rocworker serve runs already, and has {}: see rocworker status", path.display())]
    Second { path: PathBuf },
    #[error(transparent)]
    Root(root::Error),
}

#[derive(Debug)]
pub struct Claim {
    /// `None` where it could not be bound: then `rocworker status` cannot ask.
    pub listener: Option<UnixListener>,
    bound: Option<FileId>,
    lock: Lock,
    /// Whether nothing failed when lock and socket were made.
    is_whole: bool,
}

/// The pause before the next try where the lock or the socket could not be made.
const AGAIN: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(5);

const READABLE: u32 = 0o755;

/// Device and inode: what distinguishes a file from another that was made in its place.
type FileId = (u64, u64);

impl Claim {
    pub fn stake(root: &Root) -> Result<Self, Error> {
        check_owner(root).and_then(|()| open_to_readers(root)).map_err(Error::Root)?;
        let lock = match root.lock(LOCK, Duration::ZERO) {
            Err(root::Error::Locked { path, .. }) => return Err(Error::Second { path }),
            other => other.map_err(Error::Root)?,
        };
        let mut claim = Self { listener: None, bound: None, lock, is_whole: true };
        claim.bind(root);
        Ok(claim)
    }

    /// Makes the lock and the socket again where they have gone, or could not be made before.
    pub fn renew(&mut self, root: &Root) -> Result<(), Error> {
        let has_lock = is_at(root, LOCK, self.lock.node());
        if has_lock && is_at(root, SOCKET, self.bound) {
            return Ok(());
        }
        if self.is_whole {
            let gone = root.shown(if has_lock { SOCKET } else { LOCK });
            tracing::warn!("{} has gone: it is made again", gone.display());
        }
        if has_lock {
            self.bind(root);
            return Ok(());
        }
        match Self::stake(root) {
            Ok(claim) => *self = claim,
            Err(second @ Error::Second { .. }) => return Err(second),
            Err(Error::Root(error)) => {
                if self.is_whole {
                    tracing::warn!("{error}: a second daemon could begin");
                }
                self.is_whole = false;
            }
        }
        Ok(())
    }

    /// After how long the claim is renewed without an event: if lock or socket is removed while their folder is made
    /// anew, no event may come.
    pub fn again(&self) -> Duration {
        if self.is_whole { SELDOM } else { AGAIN }
    }

    fn bind(&mut self, root: &Root) {
        let bound = listener(root);
        if let Err(error) = &bound
            && self.is_whole
        {
            tracing::warn!("{}: {error}: rocworker status cannot ask", root.shown(SOCKET).display());
        }
        self.is_whole = bound.is_ok();
        self.listener = bound.ok();
        self.bound = self.listener.as_ref().and_then(|_| file_id(root, SOCKET));
    }

    /// Removes the socket, unless it is another daemon's by now.
    pub fn leave(self, root: &Root) {
        if is_at(root, SOCKET, self.bound) {
            // A socket that is left does no harm: the next daemon replaces it.
            root.remove(SOCKET).ok();
        }
    }
}

/// An older wrapper has made the folder private to root; every user reads there what is published.
fn open_to_readers(root: &Root) -> Result<(), root::Error> {
    match root.lstat(RUN) {
        Ok(found) if found.mode & READABLE != READABLE => {
            root.give_folder(RUN, Attributes { mode: found.mode | READABLE, owner: None })
        }
        _ => Ok(()),
    }
}

/// Whether the file at the path has this device and inode, and no other file has come in its place.
fn is_at(root: &Root, path: &str, id: Option<FileId>) -> bool {
    id.is_some() && file_id(root, path) == id
}

fn file_id(root: &Root, path: &str) -> Option<FileId> {
    root.identity(path).ok().map(|it| (it.device, it.inode))
}
