//! Descriptors 0 to 2, which whoever starts the wrapper may have closed.

use super::{Fd, flag, open};

impl Fd {
    /// Whether it is where a closed standard descriptor was: what is written to stdout or stderr goes there.
    pub fn is_standard(&self) -> bool {
        self.0 <= 2
    }
}

/// Opens /dev/null as each standard descriptor that is closed, so that no other file gets its number. Close-on-exec: runc
/// has them as the caller left them.
pub fn open_standard_descriptors() {
    // The kernel gives the lowest number that is free.
    while let Ok(null) = open(c"/dev/null", flag::READ_WRITE, 0)
        && null.is_standard()
    {
        std::mem::forget(null);
    }
}
