//! `rocworker serve`: reconciles the machine with the configuration while it runs.
//!
//! The [`reconciler`]'s thread waits for an event ([`uevent`], [`watch`]) or a time ([`scheduler`]), makes a
//! [`crate::run::Run::reconcile`] and publishes its [`report`]. The main thread ([`serve`]) answers `status`, signals and
//! systemd's watchdog meanwhile. [`publisher`]s write again and again what the [`exporter`] cannot read itself, the GPUs'
//! [`health`], and the labels of a Kubernetes node ([`features`]).

pub mod build;
pub mod claim;
pub mod exporter;
pub mod features;
pub mod health;
pub mod nodes;
pub mod partitions;
pub mod places;
pub mod publisher;
pub mod reconciler;
pub mod report;
pub mod scheduler;
pub mod serve;
pub mod socket;
pub mod tag_grace;
pub mod uevent;
pub mod wake;
pub mod watch;

/// The daemon's socket and its lock, beneath the Root. Every user may read their folder, so the lock is a file in it.
pub const SOCKET: &str = "/run/rocworker/daemon.sock";
pub const LOCK: &str = "/run/rocworker/daemon.lock";
/// The file in which reconcile keeps its receipt: every apply and undo changes it.
pub const RECEIPT: &str = "receipt.json";
