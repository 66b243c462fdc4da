//! What somebody else than the charm has set up on the machine. It is left as it is, until the action apply takes it over.

use super::machine::{Failure, Machine};
use super::state::State;
use super::workload::Workload;
use crate::config::Config;
use crate::memory::Memory;
use crate::run::{self, applied_elsewhere};

impl Machine<'_> {
    /// How the unit stands where it is not the charm's to apply: the machine was set up before it came, or by a configuration
    /// of another place since, which may withhold what the charm's gives. `None` where it is.
    pub(super) fn of_another(&self, state: &State, config: &Config) -> Result<Option<Workload>, Failure> {
        if state.is_taken_back || !self.is_set_up()? {
            return Ok(None);
        }
        let memory = Memory::read(self.root).map_err(Failure::installation)?;
        let command = match applied_elsewhere(self.root, config, &memory) {
            Some((path, _)) => format!("rocworker --config {} apply", path.display()),
            None if !state.has_applied => "rocworker apply".to_owned(),
            None => return Ok(None),
        };
        Ok(Some(Workload::of_another(self.unit(), &command)))
    }

    pub(super) fn is_set_up(&self) -> Result<bool, Failure> {
        Ok(run::State::read(self.root).map_err(Failure::installation)?.is_set_up())
    }

    /// Remembers that the action undo has come to its end, whatever it had to leave.
    pub(super) fn ended(&self, state: &mut State) -> Result<(), Failure> {
        state.undo_ended = true;
        state.write(self.root).map_err(Failure::installation)
    }

    /// Whether somebody has run an apply on the machine after the action undo.
    pub(super) fn was_applied_since(&self, state: &State) -> Result<bool, Failure> {
        Ok(state.undo_ended && self.is_set_up()?)
    }
}
