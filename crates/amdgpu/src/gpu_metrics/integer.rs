/// A field's name, and its values with their places.
pub(super) type Values = (&'static str, Vec<(u32, u64)>);

/// The types of a value, in the order of the kernel's `enum amdgpu_metrics_attr_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integer {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
}

impl Integer {
    /// Every type, at the place of its number in that enumeration.
    pub const ALL: [Self; 8] =
        [Self::U8, Self::S8, Self::U16, Self::S16, Self::U32, Self::S32, Self::U64, Self::S64];

    /// The size in bytes, which is the type's alignment in C, too.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16 | Self::S16 => 2,
            Self::U32 | Self::S32 => 4,
            Self::U64 | Self::S64 => 8,
        }
    }

    pub(super) const fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    /// Reads a value; all-ones is none: the driver fills a structure with ones before it writes the values
    /// that it has. No field of a published version is signed; a signed one below zero would have no value
    /// either.
    pub(super) fn read(self, bytes: &[u8]) -> Option<u64> {
        let bytes = bytes.get(..self.size())?;
        if bytes.iter().all(|byte| *byte == u8::MAX) {
            return None;
        }
        let raw = bytes.iter().rev().fold(0, |raw, byte| raw << 8 | u64::from(*byte));
        let is_negative = self.is_signed() && bytes.last().is_some_and(|highest| highest & 0x80 != 0);
        (!is_negative).then_some(raw)
    }
}
