//! plan, apply, status, undo and history through the program, beneath a Root.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out files"
)]

mod apply;
mod laid;
