//! The sixteen bytes before each message, equal in both versions: whoever knows them can step over any message.

use crate::Malformed;

/// `HIPR`, read as a number of the host (TensorFusion's plan, 6.5).
pub const MAGIC: u32 = 0x4849_5052;

/// The length of a header in bytes.
pub const SIZE: usize = 16;

/// The longest payload, in bytes. Whoever reads a longer one ends the connection: it would be held in memory.
pub const MAX_PAYLOAD: u32 = 4 * 1024 * 1024;

pub const VERSION_1: u16 = 1;
pub const VERSION_2: u16 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub version: u16,
    /// One of [`crate::calls`].
    pub op: u16,
    /// Chosen by who asks; a reply has its request's.
    pub id: u32,
    /// Of the payload, in bytes.
    pub length: u32,
}

impl Header {
    pub fn bytes(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.version.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.op.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.id.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// # Errors
    /// The magic number is another one, the version is not known, or the payload is longer than [`MAX_PAYLOAD`].
    pub fn parse(bytes: &[u8; SIZE]) -> Result<Self, Malformed> {
        let [m0, m1, m2, m3, v0, v1, o0, o1, i0, i1, i2, i3, l0, l1, l2, l3] = *bytes;
        let magic = u32::from_le_bytes([m0, m1, m2, m3]);
        if magic != MAGIC {
            return Err(Malformed(format!(
                "a message begins with {magic:#010x} in place of {MAGIC:#010x}, so that another program is there"
            )));
        }
        let header = Self {
            version: u16::from_le_bytes([v0, v1]),
            op: u16::from_le_bytes([o0, o1]),
            id: u32::from_le_bytes([i0, i1, i2, i3]),
            length: u32::from_le_bytes([l0, l1, l2, l3]),
        };
        if header.version != VERSION_1 && header.version != VERSION_2 {
            return Err(Malformed(format!(
                "a message has version {}, and 1 and 2 are known",
                header.version
            )));
        }
        if header.length > MAX_PAYLOAD {
            return Err(Malformed(format!(
                "a message announces {} bytes, and {MAX_PAYLOAD} are the most",
                header.length
            )));
        }
        Ok(header)
    }
}
