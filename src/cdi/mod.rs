//! The CDI spec as a file: made from what should be, and held against what is.

mod check;
mod siblings;
mod text;

pub use check::{Finding, check};
pub use siblings::{is_read_by_engines, same_kind};
pub use text::{Error, text};

/// More than any spec has: 64 partitions make 60 KB.
pub const LIMIT: usize = 4 << 20;

/// Mode of the spec's file: everybody may read what engines offer.
pub const MODE: u32 = 0o644;

/// Text of a spec that may be a stranger's: what would steer a terminal is written out.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}
