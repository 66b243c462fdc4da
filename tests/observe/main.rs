//! What rocworker reads of a machine, and the report that carries it elsewhere.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its figures, and lays out files"
)]

mod cdi;
mod config;
mod detect_bad_sysfs;
mod detect_captures;
mod detect_shapes;
mod detect_table;
mod explain;
mod explain_codes;
mod explain_journal;
mod explain_kfd;
mod explain_lines;
mod forged_log;
mod health;
mod in_memory;
mod metrics;
mod metrics_by_hand;
mod metrics_over_time;
mod pending_gpus;
mod real_cdi_oracle;
mod real_hanging_commands;
mod real_journal;
mod real_layout;
mod real_metrics;
mod real_metrics_hanging;
mod real_report;
mod report;
mod top;
mod topology;
