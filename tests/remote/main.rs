//! `rocworker remote` with a real ssh, a real systemd and dpkg: what it brings to a machine, and what it leaves there.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

mod asker;
mod bare;
mod before;
mod broken;
mod foreign;
mod scripts;
