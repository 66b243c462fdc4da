//! AMD's packages by real apt, run by the real program in a copy of this system whose hardware is a laid-out machine's. The
//! packages are stand-ins of the same names; AMD's own repositories are not reached from here.

pub(crate) mod debian;
pub(crate) mod driver;
mod keys;
mod real_installer;
mod real_installer_killed;
mod real_runtime;
mod real_therock;
mod real_tools;
mod worker;
