//! The machine as a hook finds it: what of it is read, what decides, and who may be run.

use std::path::PathBuf;

use reconcile::command::Programs;
use root::Root;

use super::options::{Mode, Options, Role};
use super::own_files::PROGRAM;
use super::state::State;
use super::tools::{self, Tools};
use super::workload::Workload;
use super::{Environment, Event};
use crate::config::Config;
use crate::engines::concourse::UNIT;
use crate::engines::unit::FOLDERS;
use crate::memory::Memory;
use crate::own_program::PACKAGED;
use crate::run::{self, Own, Run, applied_elsewhere};
use crate::timestamp::Timestamp;

/// The unit of Concourse's web node, as the Concourse charm has it.
const WEB_UNIT: &str = "concourse-server.service";

/// What a hook works with.
#[derive(Debug)]
pub struct Machine<'a> {
    pub root: &'a Root,
    /// `None` beneath another Root than `/`.
    pub programs: Option<&'a Programs>,
    pub tools: &'a Tools,
    pub environment: &'a Environment,
    /// The program that runs, on the machine that it runs on.
    pub running: PathBuf,
    pub now: Timestamp,
    /// Who called, as far as the machine tells.
    pub caller: String,
}

/// Why a hook could not do what it is for.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Juju cannot be told of anything.
    #[error(transparent)]
    Tools(#[from] tools::Error),
    /// An option, or the file of configuration.
    #[error("{0}")]
    Config(String),
    #[error("{0}")]
    Installation(String),
}

impl Failure {
    pub(super) fn installation(error: impl std::fmt::Display) -> Self {
        Self::Installation(error.to_string())
    }
}

impl Machine<'_> {
    /// What is done here: by the option, else by which of Concourse's units there is.
    pub(super) fn role(&self, options: &Options) -> Role {
        match options.mode {
            Mode::Web => Role::Web,
            Mode::Worker => Role::Worker,
            Mode::Auto if self.has_unit(UNIT) => Role::Worker,
            Mode::Auto if self.has_unit(WEB_UNIT) => Role::Web,
            Mode::Auto => Role::Machine,
        }
    }

    pub(super) fn has_worker(&self) -> bool {
        self.has_unit(UNIT)
    }

    fn has_unit(&self, name: &str) -> bool {
        FOLDERS.iter().any(|folder| self.root.exists(format!("{folder}/{name}")))
    }

    /// The unit's name; what another's hook without one is called.
    pub(super) fn unit(&self) -> &str {
        self.environment.unit.as_deref().unwrap_or("UNIT")
    }

    /// The commands, told of the model's proxies.
    pub(super) fn told_programs(&self) -> Option<Programs> {
        let proxies: Vec<(&str, &str)> =
            self.environment.proxies.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.programs.map(|programs| programs.with_environment(&proxies))
    }

    /// Does something with the machine set up as the configuration says.
    pub(super) fn with_run<T>(
        &self,
        event: Event,
        config: &Config,
        act: impl FnOnce(&Run<'_>) -> Result<T, run::Error>,
    ) -> Result<T, run::Error> {
        let programs = self.told_programs();
        // The charm's folder goes with the charm: what runs later is what stays.
        let stays = [PathBuf::from(PROGRAM), PathBuf::from(PACKAGED)];
        let stays = stays.into_iter().rev().find(|path| self.root.exists(path));
        let program = stays.unwrap_or_else(|| self.running.clone());
        let caller = format!("{}, for {}'s {}", self.caller, self.unit(), event.described());
        let own = Own::at(&self.running, program);
        act(&Run { root: self.root, config, programs: programs.as_ref(), own, now: self.now, caller })
    }

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
