//! The GPU reader, by its public interface.
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, lays out files and runs programs"
)]

mod compiled;
mod generation;
mod gpu_metrics;
mod partitioning;
mod readings;
