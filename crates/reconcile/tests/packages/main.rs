//! Packages and archives, by real apt and dpkg.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

#[path = "../machine/mod.rs"]
mod machine;
mod real_dpkg;
mod real_packages;
mod real_packages_faults;
mod real_packages_killed;
mod real_packages_stay;
mod real_unpacked;
mod real_unpacked_killed;
mod worker;
