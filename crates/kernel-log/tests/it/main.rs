//! The kernel's log, by the public interface of this crate.
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, lays out files and runs programs"
)]

mod captured;
mod forged;
mod known;
mod memory;
mod oracle;
