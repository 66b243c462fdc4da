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
mod in_process;
mod laid;
mod late;
mod mended;
mod places;
mod program;
mod progress;
mod races;
mod real_apply;
mod real_boot;
mod real_crashes;
mod real_disks;
mod real_hidden;
mod real_kill;
mod real_order;
mod real_systemd;
mod receipts;
mod runs;
mod set_up;
mod slips;
mod starts;
mod theirs;
mod way_back;
