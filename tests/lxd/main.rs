//! `lxd advise`: the commands that pass AMD's cards into a container, from published answers of LXD's and Incus's form
//! and from a real Incus.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and starts programs as they are"
)]

mod advise;
mod incus;
mod inside;
