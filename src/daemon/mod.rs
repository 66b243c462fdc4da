//! `rocworker serve`: reconciles the machine with the configuration while it runs.
//!
//! The scheduler folds what [`uevent`] and [`watch`] report into looks. The reconciler makes each look, a
//! [`crate::run::Run::reconcile`], in a thread of its own, so that the process answers `status`, signals and systemd's
//! watchdog meanwhile. Values without a clock of their own decide what is due when: [`scheduler::Scheduler`],
//! [`tag_grace::TagGrace`].

pub mod ask;
pub mod build;
pub mod claim;
pub mod interests;
pub mod netlink;
pub mod nodes;
pub mod notify;
pub mod places;
pub mod reconciler;
pub mod report;
pub mod scheduler;
pub mod serve;
pub mod socket;
pub mod state;
pub mod tag_grace;
pub mod uevent;
pub mod watch;

/// Where the daemon's socket and its lock are, beneath the Root. The folder is the wrapper's too. Everybody may read
/// it, so nobody locks the folder itself.
pub const RUN: &str = "/run/rocworker";
pub const SOCKET: &str = "/run/rocworker/daemon.sock";
pub const LOCK: &str = "/run/rocworker/daemon.lock";
