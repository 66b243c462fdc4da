//! plan, apply, status, undo and history through the program, beneath a Root.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

mod apply;
mod blocked_paths;
mod boot;
mod boot_prunes_spec;
mod cdi_conflicts;
mod command_line;
mod default_runtime;
mod demo;
mod drift;
mod exporter;
mod hand_edits;
mod in_process;
mod interrupted_runs;
mod is_set_up;
mod laid;
mod late_driver;
mod moves;
mod plan;
mod policy;
mod program;
mod progress;
mod quarantine;
mod races;
mod real_apply;
mod real_boot;
mod real_crashes;
mod real_disks;
mod real_exporter;
mod real_hidden;
mod real_kill;
mod real_monitoring;
mod real_order;
mod real_systemd;
mod receipts;
mod starting_states;
mod status;
mod templates;
mod undo_conditions;
mod unmanaged_content;
mod wrapper_in_use;
