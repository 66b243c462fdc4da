//! Why a kernel ends before its end.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A lane reached for memory that nobody has allocated.
    Memory { address: u64, bytes: usize },
    /// A lane reached beyond the group's local memory, or the wave's scratch memory.
    Local { offset: u64, bytes: usize, has: usize },
    /// The interpreter does not know the instruction, or something that it asks for.
    Unknown(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Memory { address, bytes } => {
                write!(f, "a lane reached for {bytes} bytes at {address:#x}, which nobody has allocated")
            }
            Fault::Local { offset, bytes, has } => {
                write!(f, "a lane reached for {bytes} bytes at {offset} of a memory that has {has}")
            }
            Fault::Unknown(what) => f.write_str(what),
        }
    }
}
