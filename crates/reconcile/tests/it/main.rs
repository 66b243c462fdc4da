//! What a transaction does to files, nodes and units, and to packages and archives by real apt and dpkg.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, reports figures, lays out files and runs programs"
)]

mod files;
mod machine;
mod no_threads;
mod packages;
