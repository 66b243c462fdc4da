//! The program `rocworker-device-plugin` beside a kubelet, and the files that install it.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking, reports figures, lays out files and runs programs"
)]

mod allocate;
mod deploy;
mod faults;
mod health;
#[path = "../../examples/measure/kubelet.rs"]
mod kubelet;
mod labels;
mod lists;
mod preferred;
mod program;
mod published_api;
mod real_kubelet;
mod registration;
mod running;
