//! The wrapper: its own part on laid-out files, and in front of real runc.
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, reports figures, lays out a machine and runs runc on it"
)]

mod already_given;
mod bundles;
mod decisions;
mod folders;
mod machine;
mod reading;
mod real_args;
mod real_call;
mod real_exclusive;
mod real_faults;
mod real_folders;
mod real_images;
mod real_nodes;
mod real_one_holder;
mod real_other_users;
mod real_policy;
mod real_quarantine;
mod real_race;
mod real_runc;
mod real_size_limit;
mod real_unreadable;
mod stage;
mod states;
mod surroundings;
