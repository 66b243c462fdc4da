//! Juju: the same plan, apply and undo, called by an agent's hooks and actions, and answered through its hook tools.
//!
//! A hook reads the charm's options, writes the configuration that they mean ([`Options::configuration`]), runs the
//! pipeline of a person's `rocworker apply`, and sets the unit's status (unit_status.rs). Nothing here reads the
//! environment: what Juju says there comes in as [`Environment`].

mod actions;
mod answer;
mod charm;
mod event;
mod hooks;
mod options;
mod own_files;
mod removal;
mod tools;
mod unit_status;

pub use event::{Environment, Event};
pub use hooks::{Ended, Machine};
pub use options::{Options, Role, WrongConfig};
pub use tools::Tools;
pub use unit_status::{UnitStatus, Workload};
