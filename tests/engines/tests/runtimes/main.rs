//! Runtimes other than this machine's runc behind the wrapper.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

mod real_crun_lives;
mod releases;
mod rootless;
