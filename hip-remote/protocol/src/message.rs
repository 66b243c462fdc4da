//! Whole messages of version 2.

use crate::Malformed;
use crate::calls::{self, Call};
use crate::envelope::{self, ERROR, Envelope};
use crate::field::Field;
use crate::header::{self, Header, VERSION_2};

/// The length of a header and an envelope in bytes.
pub const PREFIX: usize = header::SIZE + envelope::SIZE;

/// The most bytes of a copy in one chunk.
pub const MAX_CHUNK: usize = 1024 * 1024;

/// The bytes of a copy's chunk as client and worker send it: a device copies one chunk while the next is on its way, so that
/// longer ones make its first or last copy longer, which nothing overlaps. Shorter ones cost more system calls and events.
pub const USUAL_CHUNK: usize = MAX_CHUNK / 2;

/// Appends a message: its prefix, its fields and its variable bytes.
pub fn put(op: u16, id: u32, envelope: Envelope, fields: &impl Field, variable: &[u8], out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend_from_slice(&[0; PREFIX]);
    fields.put(out);
    out.extend_from_slice(variable);
    let length = out.len() - begin - header::SIZE;
    let prefix = prefix(op, id, envelope, length - envelope::SIZE);
    if let Some(to) = out.get_mut(begin..begin + PREFIX) {
        to.copy_from_slice(&prefix);
    }
}

/// The prefix of a message whose `bytes` of fields and variable bytes are written after it.
pub fn prefix(op: u16, id: u32, envelope: Envelope, bytes: usize) -> [u8; PREFIX] {
    let length = u32::try_from(bytes + envelope::SIZE).unwrap_or(u32::MAX);
    let mut prefix = [0; PREFIX];
    prefix[..header::SIZE].copy_from_slice(&Header { version: VERSION_2, op, id, length }.bytes());
    prefix[header::SIZE..].copy_from_slice(&envelope.bytes());
    prefix
}

/// Appends a request.
pub fn request<C: Call>(call: &C, id: u32, flags: u16, lane: u16, variable: &[u8], out: &mut Vec<u8>) {
    put(C::OP, id, Envelope { flags, lane, status: 0 }, call, variable, out);
}

/// Appends a reply to a call of `op`.
pub fn reply(op: u16, id: u32, lane: u16, fields: &impl Field, variable: &[u8], out: &mut Vec<u8>) {
    put(op, id, Envelope { flags: 0, lane, status: 0 }, fields, variable, out);
}

/// Appends a reply that has a `hipError_t` alone, and further flags such as [`envelope::DEFERRED`].
pub fn error(op: u16, id: u32, lane: u16, status: i32, flags: u16, out: &mut Vec<u8>) {
    put(op, id, Envelope { flags: ERROR | flags, lane, status }, &(), &[], out);
}

/// A call's fields, and its variable bytes.
///
/// # Errors
/// The payload is shorter than the fields.
pub fn fields<F: Field>(op: u16, mut payload: &[u8]) -> Result<(F, &[u8]), Malformed> {
    let whole = payload.len();
    match F::take(&mut payload) {
        Some(fields) => Ok((fields, payload)),
        None => {
            let name = calls::name(op).unwrap_or("an unknown call");
            Err(Malformed(format!("{name} has {whole} bytes, which are too few")))
        }
    }
}
