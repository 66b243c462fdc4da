//! The kernel's own buffer, /dev/kmsg (Documentation/ABI/testing/dev-kmsg): a record a read.
//!
//! Beneath another Root than `/` a plain file in the same format stands in for it.

use std::time::Duration;

use amdgpu::Address;
use root::Root;

/// A record of the kernel's own: what programs write to /dev/kmsg is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub sequence: u64,
    /// The kernel's clock, which stands while the machine sleeps.
    pub since_boot: Duration,
    pub text: Vec<u8>,
    /// `DEVICE=+pci:0000:03:00.0`, where the kernel says it.
    pub device: Option<Address>,
}

/// The buffer, read from its oldest record on.
#[derive(Debug)]
pub struct Kmsg {}

/// What came since the last read.
#[derive(Debug, Default)]
pub struct Read {
    pub records: Vec<Record>,
    /// Whether the kernel has overwritten records before they were read.
    pub lost: bool,
}

impl Kmsg {
    /// # Errors
    /// A sentence: it cannot be opened.
    pub fn open(_root: &Root) -> Result<Self, String> {
        Ok(Self {})
    }

    /// Does not wait.
    ///
    /// # Errors
    /// A sentence: the kernel gives no more.
    pub fn read(&mut self) -> Result<Read, String> {
        Ok(Read::default())
    }
}
