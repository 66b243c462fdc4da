//! `rocworker serve` beneath a Root: the real inotify, and a captured machine's nodes in its record.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

mod after_undo;
mod config;
mod exporter;
mod gpus;
mod health;
#[path = "../setup/laid.rs"]
#[allow(dead_code, reason = "what the tests of setup need beside")]
mod laid;
mod real_cards;
mod real_hanging_gpu;
mod real_restarts;
mod real_unit;
mod repairs;
mod running;
mod shutdown;
mod socket;
mod unit;
