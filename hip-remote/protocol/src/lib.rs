//! The messages between a program's HIP library and the worker that has the GPUs: their bytes, without I/O.
//!
//! A message is a [`header::Header`] and a payload. In version 2 the payload begins with an
//! [`envelope::Envelope`], has the fields of one [`calls`] next, and ends with a call's variable bytes: the
//! arguments of a kernel, a name, a part of a copy. hip-remote/PROTOCOL.md has each byte.

pub mod calls;
pub mod envelope;
pub mod field;
pub mod header;
pub mod message;
pub mod v1;

/// Bytes that are no message, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}
