//! Edits of other programs' TOML.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

mod corpus;
mod entries;
mod generated;
mod keys;
