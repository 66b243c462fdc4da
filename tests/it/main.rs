//! The program on machines that are laid out, captured or set up with real components, and rocworker's library where it
//! answers without one.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, reports figures, lays out files and runs programs"
)]

mod charm;
mod daemon;
mod desired;
mod doctor;
mod fleet;
mod observe;
mod packages;
mod partition;
mod remote;
mod setup;
