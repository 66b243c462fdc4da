//! Pinned memory for copies. Pinning costs more than a small copy, so that memory is used again.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

use crate::hip::{Hip, Pinned, Status};
use crate::locked::locked;
use crate::releases::Releases;

/// The smallest piece.
const LEAST: usize = 4096;
/// How many bytes are kept for later copies.
const KEPT: usize = 256 * 1024 * 1024;

/// The length of a piece for so many bytes.
pub fn length(bytes: usize) -> usize {
    bytes.next_power_of_two().max(LEAST)
}

#[derive(Debug)]
pub struct Staging {
    hip: Arc<Hip>,
    releases: Arc<Releases>,
    free: Mutex<Vec<Pinned>>,
}

/// Pinned memory that goes back when it is dropped.
#[derive(Debug)]
pub struct Piece {
    staging: Arc<Staging>,
    pinned: Option<Pinned>,
}

impl Staging {
    pub fn new(hip: &Arc<Hip>, releases: &Arc<Releases>) -> Arc<Self> {
        Arc::new(Self { hip: Arc::clone(hip), releases: Arc::clone(releases), free: Mutex::default() })
    }

    /// # Errors
    /// The library has no more pinned memory.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Result<Piece, Status> {
        let length = length(bytes);
        let kept = {
            let mut free = locked(&self.free);
            let at = free.iter().rposition(|pinned| pinned.length() == length);
            at.map(|at| free.swap_remove(at))
        };
        let pinned = match kept {
            Some(pinned) => pinned,
            None => Pinned::new(&self.hip, length)?,
        };
        Ok(Piece { staging: Arc::clone(self), pinned: Some(pinned) })
    }
}

impl Staging {
    /// Frees the memory that nobody uses.
    pub fn clear(&self) {
        locked(&self.free).clear();
    }
}

impl Piece {
    pub fn address(&self) -> u64 {
        self.pinned.as_ref().map_or(0, |pinned| pinned.address(0))
    }
}

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.pinned.as_ref().map_or(&[], |pinned| pinned.bytes(0..pinned.length()))
    }
}

impl DerefMut for Piece {
    fn deref_mut(&mut self) -> &mut [u8] {
        let Some(pinned) = &mut self.pinned else { return &mut [] };
        let length = pinned.length();
        pinned.bytes_mut(0..length)
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let Some(pinned) = self.pinned.take() else { return };
        let mut free = locked(&self.staging.free);
        let kept: usize = free.iter().map(Pinned::length).sum();
        if kept + pinned.length() <= KEPT {
            free.push(pinned);
        } else {
            // The library waits for its devices before it frees pinned memory: the reader must not.
            self.staging.releases.push(0, move || drop(pinned));
        }
    }
}
