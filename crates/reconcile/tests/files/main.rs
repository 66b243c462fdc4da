//! Transactions on files, nodes and units, including runs that are killed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

mod concurrent_edits;
mod effects;
mod killed_runs;
#[path = "../machine/mod.rs"]
mod machine;
mod real_crashes;
mod real_nodes;
mod reboot;
mod stored;
mod third_party;
