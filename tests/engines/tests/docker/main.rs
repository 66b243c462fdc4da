//! Containers that dockerd starts through the wrapper or by CDI.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

mod canary_dockerd;
mod canary_several;
mod real_build;
mod real_docker_applied;
mod real_docker_default;
mod real_docker_holders;
mod real_dockerd;
mod real_users;
