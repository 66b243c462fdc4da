//! The Debian package by real dpkg and apt, in a copy of this system and of Debian 13 whose hardware is a laid-out
//! machine's; what else is handed out; and what versions have stored.

mod real_daemon;
mod real_handed_out;
mod real_installed;
mod real_killed;
mod real_removal_stopped;
mod real_versions;
mod stored;
pub(crate) mod worker;
