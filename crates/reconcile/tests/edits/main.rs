//! Edits of other programs' TOML.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

mod toml;
mod toml_corpus;
mod toml_entries;
mod toml_generated;
