use std::fmt;

/// A GPU's unique id in the form that ROCr and HIP take: `GPU-` and 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(u64);

impl Uuid {
    /// `None` for 0, by which the driver says that it has none.
    #[must_use]
    pub fn new(unique_id: u64) -> Option<Self> {
        (unique_id != 0).then_some(Self(unique_id))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GPU-{:016x}", self.0)
    }
}
