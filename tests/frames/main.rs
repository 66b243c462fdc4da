//! Reading a machine's files by a shell: what is read there is what a local command reads.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

mod answers;
mod complete;
mod equal;
mod hostile;
mod links;
mod machines;
mod shells;
