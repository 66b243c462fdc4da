//! The eight bytes with which a payload of version 2 begins.

use crate::Malformed;

/// The length of an envelope in bytes.
pub const SIZE: usize = 8;

/// A request whose sender waits for no reply. A failure comes with the next reply to its lane, which has [`DEFERRED`].
pub const NO_REPLY: u16 = 1;
/// A reply whose status is not `hipSuccess`.
pub const ERROR: u16 = 2;
/// A part of a copy or of a code object, of the request whose id it has: bytes follow the envelope, and nothing before them.
pub const CHUNK: u16 = 4;
/// A reply whose status is an earlier one-way call's of the lane; its own call went well.
pub const DEFERRED: u16 = 8;

/// How many lanes a client may have.
pub const LANES: u16 = 4096;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// [`NO_REPLY`], [`ERROR`], [`CHUNK`], [`DEFERRED`].
    pub flags: u16,
    /// The client's thread, counted from 0: the worker keeps its device and its stream.
    pub lane: u16,
    /// A reply's `hipError_t`; 0 in a request.
    pub status: i32,
}

impl Envelope {
    pub fn bytes(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[0..2].copy_from_slice(&self.flags.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.lane.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.status.to_le_bytes());
        bytes
    }

    /// Takes a payload's envelope from its beginning.
    ///
    /// # Errors
    /// The payload is shorter than an envelope, or has a flag that is not known.
    pub fn take(payload: &mut &[u8]) -> Result<Self, Malformed> {
        let Some((&[f0, f1, l0, l1, s0, s1, s2, s3], rest)) = payload.split_first_chunk::<SIZE>() else {
            return Err(Malformed(format!("a payload of {} bytes has no envelope", payload.len())));
        };
        *payload = rest;
        let flags = u16::from_le_bytes([f0, f1]);
        if flags & !(NO_REPLY | ERROR | CHUNK | DEFERRED) != 0 {
            return Err(Malformed(format!("an envelope has the flags {flags:#06x}")));
        }
        Ok(Self { flags, lane: u16::from_le_bytes([l0, l1]), status: i32::from_le_bytes([s0, s1, s2, s3]) })
    }

    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}
