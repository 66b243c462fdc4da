//! What the source of every package holds to.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test reads the source and asks cargo")]

mod import_circles;
mod reading_part;
