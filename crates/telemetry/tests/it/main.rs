//! Snapshots, metrics and alerts, by the public interface of this crate.
#![allow(
    clippy::disallowed_methods,
    clippy::float_cmp,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, lays out files and runs programs"
)]

mod alerts;
mod compare;
mod daemon_files;
mod health;
mod index;
mod processes;
mod real_containers;
mod snapshot;
