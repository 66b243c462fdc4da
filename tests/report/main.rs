//! `report`: what detect said on the machine it says again on the archive, and nothing is in it that is
//! nobody's business.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, lays out files, and runs the program"
)]

mod answers;
mod archive;
mod contents;
mod file;
