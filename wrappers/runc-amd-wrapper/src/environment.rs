//! The wrapper's environment, besides its arguments.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// The environment, as the kernel handed it over, and who runs the program.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a> {
    /// `KEY=VALUE` entries.
    pub entries: &'a [&'a [u8]],
    /// The effective user id.
    pub effective_user: u32,
}

impl<'a> Environment<'a> {
    /// The first value of a variable, as getenv gives it.
    pub fn get(&self, name: &str) -> Option<&'a OsStr> {
        self.entries
            .iter()
            .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(OsStr::from_bytes))
    }
}
