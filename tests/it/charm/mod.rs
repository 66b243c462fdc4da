//! The charm: its hooks and actions with stand-ins for Juju's hook tools, and the charm as charmcraft packs it.
//!
//! This is not Juju: nothing here deploys, relates or runs an agent. The stand-ins (hook_tool.py) take what Juju's tools
//! take and refuse everything else, and what a hook tells counts only when the hook ends with 0.

mod concurrent_hooks;
mod crashes;
mod driver;
mod exporter;
mod gpu_reset;
mod hooks;
mod in_process;
mod machines;
mod package;
mod packed;
mod readme;
mod record;
mod removal;
mod unit;
mod yaml;
