//! What this crate lays out for other tests, by the word of the real programs that read it.
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and its files are beneath no Root"
)]

mod real_dkms;
mod real_faults;
mod real_machine;
mod real_packages;
mod real_server;
