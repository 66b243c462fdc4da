//! Containers that containerd starts through the wrapper, and what rocworker finds of containerd.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

mod canary;
mod containers;
mod effective;
mod fidelity;
mod inherited;
mod load;
mod real_boots;
mod real_cdi_names;
mod real_concourse;
mod real_configured;
mod real_stopped;
