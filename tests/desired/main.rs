//! What each component should be: a pure function of the configuration and the machine.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

mod concourse;
mod containerd;
mod crio;
mod docker;
mod host;
mod policy;
mod real_docker;
mod real_getent;
mod real_udev;
mod tags;
mod templates;
mod wanted;
