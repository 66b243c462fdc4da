//! Juju: the same plan, apply and undo, called by an agent's hooks and actions, and answered through its hook tools.
//!
//! Nothing here reads the environment: what Juju says there comes in as [`Environment`]. The charm's options become the
//! configuration of this machine ([`Options::configuration`]), which everything else reads as it reads a person's.

mod actions;
mod answer;
mod environment;
mod event;
mod hindrance;
mod hooks;
mod machine;
mod options;
mod own_files;
mod removal;
mod state;
mod steps;
mod tools;
mod turn;
mod unit_summary;
mod workload;

pub use environment::Environment;
pub use event::{Action, Event, UnknownEvent};
pub use hooks::Ended;
pub use machine::{Failure, Machine};
pub use options::{Mode, Options, Role, WrongOption};
pub use steps::Steps;
pub use tools::{Error, Tools, Way};
pub use workload::{State as WorkloadState, UnitSummary, Workload};
