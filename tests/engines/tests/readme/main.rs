//! The README's quick starts, word for word, by real engines.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out files"
)]

mod concourse;
mod operator;
mod podman;
mod system;
