//! plan, apply, status, undo and history through the program, beneath a Root.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

mod apply;
mod boot;
mod hand_edits;
mod laid;
mod late;
mod mended;
mod places;
mod program;
mod races;
mod real_disks;
mod real_kills;
mod real_order;
mod receipts;
mod runs;
mod slips;
mod starts;
mod theirs;
mod way_back;
