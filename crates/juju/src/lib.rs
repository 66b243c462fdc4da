//! Juju without the machine: its hook [`tools`], the [`event`] that it sends, the [`options`] of a charm and the configuration
//! that they mean, what a [`charm`] has put on a machine, an action's [`answer`] and a unit's [`unit_status`].

pub mod answer;
pub mod charm;
pub mod event;
pub mod options;
pub mod tools;
pub mod unit_status;

pub use event::{Environment, Event};
pub use options::{Options, Role, WrongConfig};
pub use tools::Tools;
pub use unit_status::{UnitStatus, Workload};
