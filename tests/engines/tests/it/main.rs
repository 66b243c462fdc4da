//! Real engines and runtimes with the wrapper, and the README's quick starts.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, reports figures, lays out files and runs programs"
)]

mod containerd;
mod docker;
mod readme;
mod runtimes;
