//! Where the program wants what its copies read from a device.

use std::collections::HashMap;

use hip_protocol::message::MAX_CHUNK;
use hip_transport::{Reader, Result};

use super::rows::Rows;
use crate::program;

/// Rows shorter than this come through a buffer, because a system call for each would take longer than the copy.
const SHORT: usize = 4096;

struct Target {
    rows: Rows,
    filled: usize,
    waited_for: bool,
}

/// The copies whose bytes have not all come, by their requests' ids.
#[derive(Default)]
pub(super) struct Targets {
    by_id: HashMap<u32, Target>,
    /// Bytes of the copies for which no thread waits.
    pub(super) in_background: usize,
}

impl Targets {
    pub(super) fn add(&mut self, id: u32, rows: Rows, waited_for: bool) {
        if !waited_for {
            self.in_background += rows.bytes();
        }
        self.by_id.insert(id, Target { rows, filled: 0, waited_for });
    }

    /// The next bytes of a copy are here. None where there is no such copy, or they are too many.
    pub(super) fn advance(&mut self, id: u32, length: usize) -> Option<Span> {
        let target = self.by_id.get_mut(&id)?;
        let all = target.rows.bytes();
        let span = Span { rows: target.rows, offset: target.filled, length };
        target.filled = target.filled.checked_add(length).filter(|filled| *filled <= all)?;
        if target.filled == all {
            self.remove(id);
        }
        Some(span)
    }

    /// Forgets a copy. True where all its bytes had come.
    pub(super) fn remove(&mut self, id: u32) -> bool {
        match self.by_id.remove(&id) {
            Some(target) => {
                if !target.waited_for {
                    self.in_background -= target.rows.bytes();
                }
                false
            }
            None => true,
        }
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
    pub(super) fn fill(&self, reader: &mut Reader) -> Result<()> {
        let parts = self.rows.parts(self.offset, self.length);
        if self.rows.are_one() || self.rows.width >= SHORT {
            for (address, length) in parts {
                // SAFETY: the program gave this memory to a copy and may not use it until the copy is done.
                reader.read_exact(unsafe { program::bytes_mut(address, length) })?;
            }
            return Ok(());
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
        Ok(())
    }
}
