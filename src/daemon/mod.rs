//! `rocworker serve`: keeps the machine as it should be while it runs.
//!
//! What is heard ([`uevent`], [`watch`]) is folded into looks ([`agenda`]); a look is [`crate::run::Run::keep`] in a
//! thread of its own ([`keeper`]), so that the process answers `status`, signals and systemd's watchdog meanwhile. What to
//! do when is decided by values without a clock of their own: [`agenda::Agenda`], [`debounce::Debounce`],
//! [`backoff::Backoff`], [`hold::Hold`].

pub mod agenda;
pub mod ask;
pub mod backoff;
pub mod build;
pub mod claim;
pub mod debounce;
pub mod hold;
pub mod interests;
pub mod keeper;
pub mod netlink;
pub mod nodes;
pub mod notify;
pub mod places;
pub mod report;
pub mod serve;
pub mod socket;
pub mod state;
pub mod uevent;
pub mod watch;

/// Where the daemon's socket and its lock are, beneath the Root. The folder is the wrapper's too. Everybody may read
/// it, so nobody locks the folder itself.
pub const RUN: &str = "/run/rocworker";
pub const SOCKET: &str = "/run/rocworker/daemon.sock";
pub const LOCK: &str = "/run/rocworker/daemon.lock";
