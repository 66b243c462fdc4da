//! `rocworker hook`: the plan, apply and undo of a person, called by a Juju agent's hooks and actions.
//!
//! A hook reads the charm's options, writes the configuration that they mean ([`juju::Options::configuration`]), runs the
//! pipeline of `rocworker apply`, and sets the unit's status (`after_apply`). No file here reads the environment: the caller
//! passes what Juju wrote there as [`juju::Environment`].

mod actions;
mod after_apply;
mod hooks;
mod own_files;
mod removal;

pub use hooks::{Ended, Machine};
