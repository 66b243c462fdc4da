//! What is wrong with a bundle or a process object.

use std::fmt;

use crate::{Quoted, json::DEEPEST};

/// Why a text cannot be read or edited. Each is one sentence without the file's path, which the caller knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Not JSON, from this byte on.
    Syntax { offset: usize, expected: &'static str },
    /// Nested deeper than 127.
    TooDeep { offset: usize },
    /// The key stands twice.
    Twice { key: String },
    /// The key's value is not what it must be.
    WrongType { key: String, expected: &'static str },
    /// An entry of a list cannot be read, with what is wrong about it, and where.
    Unreadable { key: String, reason: String },
    /// Two nodes of the injection are for one path.
    TwoNodes { path: String, first: String, second: String },
    /// A hook for a moment that the OCI specification does not have.
    UnknownHook { name: String },
    /// The path is another device's already.
    OtherDevice { path: String, present: String, wanted: String },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { offset, expected } => write!(f, "not JSON at byte {offset}: expected {expected}"),
            Self::TooDeep { offset } => write!(f, "nested deeper than {DEEPEST} at byte {offset}"),
            Self::Twice { key } => {
                write!(f, "the key {key} stands twice, so it is not clear which one counts")
            }
            Self::WrongType { key, expected } => write!(f, "the key {key} is not {expected}"),
            Self::Unreadable { key, reason } => write!(f, "the key {key} cannot be read: {reason}"),
            Self::TwoNodes { path, first, second } => {
                write!(f, "{} would be the device {first} and the device {second} at once", Quoted(path))
            }
            Self::UnknownHook { name } => write!(f, "no container has a hook {}", Quoted(name)),
            Self::OtherDevice { path, present, wanted } => write!(
                f,
                "{} is already the device {} in linux.devices, and the GPU's is {wanted}: take it out, or \
                 do not ask for this GPU",
                Quoted(path),
                Quoted(present),
            ),
        }
    }
}

impl std::error::Error for Error {}
