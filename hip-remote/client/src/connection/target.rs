//! Where the program wants what its copies read from a device.

use std::collections::HashMap;

use hip_protocol::message::MAX_CHUNK;
use hip_transport::{Error, Reader, Result};

use super::rows::Rows;
use crate::error::{HipError, Outcome};
use crate::program;

/// Rows shorter than this come through a buffer, because a system call for each would take longer than the copy.
const SHORT: usize = 4096;

/// The most bytes of copies to the program for which nobody waits. Beyond, a copy waits, as HIP does itself with pageable memory.
const IN_BACKGROUND: usize = 32 * 1024 * 1024;

/// The most such copies: the worker looks at each of them after every wait.
const MOST: usize = 4096;

struct Target {
    rows: Rows,
    filled: usize,
    waited_for: bool,
    /// A part of it is not the program's.
    faulted: bool,
}

/// The copies under way to the program, by their requests' ids.
#[derive(Default)]
pub(super) struct Targets {
    by_id: HashMap<u32, Target>,
    /// Bytes of the copies for which no thread waits.
    in_background: usize,
}

impl Targets {
    pub(super) fn add(&mut self, id: u32, rows: Rows, waited_for: bool) {
        if !waited_for {
            self.in_background += rows.bytes();
        }
        self.by_id.insert(id, Target { rows, filled: 0, waited_for, faulted: false });
    }

    /// Whether one more copy of so many bytes may be without a thread that waits.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.by_id.len() < MOST && self.in_background.saturating_add(bytes) <= IN_BACKGROUND
    }

    /// Where the next bytes of a copy belong. None where there is no such copy, or they are too many.
    pub(super) fn span(&self, id: u32, length: usize) -> Option<Span> {
        let target = self.by_id.get(&id)?;
        let left = target.rows.bytes() - target.filled;
        (length <= left).then_some(Span { rows: target.rows, offset: target.filled, length })
    }

    /// Bytes of a copy have come, and are in the program's memory unless they `faulted`. Until all have, the copy is under way.
    /// False where they faulted and no thread waits for the copy.
    pub(super) fn filled(&mut self, id: u32, length: usize, faulted: bool) -> bool {
        if let Some(target) = self.by_id.get_mut(&id) {
            target.filled += length;
            target.faulted |= faulted;
            let heard = target.waited_for || !faulted;
            // Who waits for a copy asks whether it faulted.
            if target.filled == target.rows.bytes() && !(target.waited_for && target.faulted) {
                self.remove(id);
            }
            return heard;
        }
        true
    }

    fn remove(&mut self, id: u32) -> Option<Target> {
        let target = self.by_id.remove(&id)?;
        if !target.waited_for {
            self.in_background -= target.rows.bytes();
        }
        Some(target)
    }

    /// Forgets a copy.
    ///
    /// # Errors
    /// Not all its bytes are in the program's memory, which the program must not read as if they were.
    pub(super) fn end(&mut self, id: u32) -> Outcome {
        match self.remove(id) {
            None => Ok(()),
            Some(Target { faulted: true, .. }) => Err(HipError::INVALID_VALUE),
            Some(_) => Err(HipError::UNKNOWN),
        }
    }

    /// A copy for which nobody waits has failed. False where there is none.
    pub(super) fn fail(&mut self, id: u32) -> bool {
        let is_there = self.by_id.get(&id).is_some_and(|target| !target.waited_for);
        if is_there {
            self.remove(id);
        }
        is_there
    }

    /// Whether a copy may still write to this memory.
    pub(super) fn reach(&self, address: usize, bytes: usize) -> bool {
        self.by_id.values().any(|target| target.rows.overlap(address, bytes))
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

/// A part of a copy's target.
pub(super) struct Span {
    rows: Rows,
    offset: usize,
    length: usize,
}

impl Span {
    /// Takes the part's bytes from the network. True where some of the memory is not the program's.
    pub(super) fn fill(&self, reader: &mut Reader) -> Result<bool> {
        let parts = self.rows.parts(self.offset, self.length);
        if self.rows.are_one() || self.rows.width >= SHORT {
            let mut faulted = false;
            for (address, length) in parts {
                // SAFETY: the program gave this memory to a copy and may not use it until the copy is done.
                match reader.read_exact(unsafe { program::bytes_mut(address, length) }) {
                    Err(Error::Fault) => faulted = true,
                    read => read?,
                }
            }
            return Ok(faulted);
        }
        let mut buffer = vec![0; self.length.min(MAX_CHUNK)];
        reader.read_exact(&mut buffer)?;
        let mut rest = buffer.as_slice();
        for (address, length) in parts {
            let Some((part, after)) = rest.split_at_checked(length) else { break };
            // SAFETY: as above.
            unsafe { program::bytes_mut(address, length) }.copy_from_slice(part);
            rest = after;
        }
        Ok(false)
    }
}
