//! Other machines: real sshds in namespaces, asked by ssh and by the program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

mod asker;
mod connecting;
mod document;
mod equal;
mod further;
mod installed;
mod login;
mod middle;
mod several;
