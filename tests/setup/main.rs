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
mod demo;
mod hand_edits;
mod in_force;
mod laid;
mod late;
mod mended;
mod places;
mod program;
mod progress;
mod races;
mod real_apply;
mod real_boot;
mod real_disks;
mod real_hidden;
mod real_kills;
mod real_order;
mod real_systemd;
mod receipts;
mod runs;
mod set_up;
mod slips;
mod starts;
mod theirs;
mod undo_constraints;
