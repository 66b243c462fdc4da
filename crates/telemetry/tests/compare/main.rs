//! The exporter's values beside those that programs of other projects read from the same machine.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test fails by panicking, tells how much it compared, and lays out files"
)]

mod machines;
mod ours;
mod real_amd_smi;
mod real_node_exporter;
mod real_rocm_smi;
