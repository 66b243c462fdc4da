//! What of the machine is taken back when a unit goes, and by the action undo; the rest is another's, or still to end.

use std::path::Path;

use reconcile::{Entry, Finding, Outcome, Package, Receipt, Store};

use super::Event;
use super::hooks::{Ended, REPORTS, level_of, of_file, of_setup};
use super::machine::{Failure, Machine};
use super::options::Options;
use super::own_files;
use super::state::{self, State};
use super::steps::Steps;
use super::tools::{self, Level};
use super::workload::{State as WorkloadState, Workload};
use crate::component::Component;
use crate::driver::PACKAGE;
use crate::memory::Memory;
use crate::program::AGENTS;
use crate::run::{self, ActiveConfig, ConfigFile, without_restarts};

/// What the configuration's folder would hold, were there anything in it.
const CONFIGURATION_FOLDER: &str = "/etc/rocworker";

impl Machine<'_> {
    pub(super) fn remove(&self, event: Event) -> Result<Ended, tools::Error> {
        let failure = match self.take_away(event) {
            Ok(()) => return Ok(Ended { workload: None, is_well: true }),
            Err(Failure::Tools(error)) => return Err(error),
            Err(Failure::Config(text) | Failure::Installation(text)) => text,
        };
        // Were this the hook's good end, the unit would go, and what is on the machine would stay with nobody to tell.
        let workload = Workload::new(WorkloadState::Blocked, &format!("Removal failed: {failure}"));
        self.tell(event, &workload)?;
        Ok(Ended { workload: Some(workload), is_well: false })
    }

    /// Takes back what the charm has applied, unless another unit of a charm is on this machine still. What somebody else
    /// has set up, before the charm could, stays as it is.
    fn take_away(&self, event: Event) -> Result<(), Failure> {
        let _turn = self.turn()?;
        let mut state = State::read(self.root).map_err(Failure::installation)?;
        let left = state.units.iter().filter(|unit| **unit != self.unit() && self.is_there(unit));
        let left: Vec<String> = left.cloned().collect();
        if !left.is_empty() {
            let text = format!("what is set up here stays: {} is on this machine too", left.join(", "));
            state.units = left;
            state.write(self.root).map_err(Failure::installation)?;
            return Ok(self.tools.log(Level::Info, &text)?);
        }
        let is_ours = state.has_applied && !(state.is_taken_back && self.was_applied_since(&state)?);
        let receipt = Store::new(self.root).receipt().map_err(Failure::installation)?;
        // As after an undo, a driver may stay without the program.
        // So does a spec that `cdi generate` wrote, which sets up no worker.
        let needs_program =
            |entry: &Entry| !entry.component.is_empty() && entry.component != Component::Packages.as_ref();
        if is_ours || !receipt.entries.iter().any(needs_program) {
            // What waits for a worker's builds to end, and starts it again, is this program.
            let is_needed = is_ours && self.take_back_whole(event)?;
            own_files::remove(self.root, &state, is_needed).map_err(of_file)?;
        } else {
            // The program and the configuration are a part of it, whoever brought them.
            let text = "what is set up here stays: it was applied without the charm, and rocworker undo takes it back";
            self.tools.log(Level::Info, text)?;
        }
        if self.root.exists(REPORTS) {
            self.root.remove_tree(REPORTS).map_err(Failure::installation)?;
        }
        if self.root.exists(CONFIGURATION_FOLDER) {
            self.root.remove_empty_folder(CONFIGURATION_FOLDER).map_err(Failure::installation)?;
        }
        self.root.remove(state::PATH).map_err(Failure::installation)?;
        self.root.sweep(state::PATH);
        Ok(())
    }

    /// Whether something is still to end, which comes to its end by itself. What stays otherwise fails: only the program
    /// and charm.json, which are to go next, could take it back.
    fn take_back_whole(&self, event: Event) -> Result<bool, Failure> {
        let undone = self.undo(event, false)?;
        self.log_undone(&undone)?;
        match self.open(&undone)? {
            None => Ok(undone.effects.iter().any(|it| it.outcome == Outcome::Pending)),
            Some(why) => Err(Failure::Installation(format!(
                "{why}; put that right on the machine, then juju resolved {} runs this hook again",
                self.unit()
            ))),
        }
    }

    /// After the action undo nothing is set up. One that was killed, or could not begin, is ended by the next hook; what
    /// somebody has applied since is theirs.
    pub(super) fn held(&self, event: Event, state: &mut State) -> Result<Workload, Failure> {
        let receipt = Store::new(self.root).receipt().map_err(Failure::installation)?;
        let has_driver = has_driver(&receipt);
        let stays = |entry: &Entry| has_driver && entry.component == Component::Packages.as_ref();
        if receipt.entries.iter().all(stays) {
            return Ok(Workload::taken_back(self.unit(), None));
        }
        if self.was_applied_since(state)? {
            return Ok(Workload::applied_since(self.unit()));
        }
        let is_left = Memory::read(self.root).map_err(Failure::installation)?.undone;
        if state.undo_ended && !is_left {
            // Nothing is left of the undo: what is there came since, by `cdi generate`, and is its caller's.
            return Ok(Workload::taken_back(self.unit(), None));
        }
        let undone = self.undo(event, false)?;
        self.log_undone(&undone)?;
        self.after_undo(&undone, state)
    }

    /// How the unit stands after an undo. One that refused to begin changed nothing, and the next hook tries it again.
    pub(super) fn after_undo(&self, undone: &run::Outcome, state: &mut State) -> Result<Workload, Failure> {
        let open = self.open(undone)?;
        if self.is_set_up()? {
            return Ok(Workload::undo_refused(&open.unwrap_or_default()));
        }
        self.ended(state)?;
        Ok(Workload::taken_back(self.unit(), open.as_deref()))
    }

    fn log_undone(&self, undone: &run::Outcome) -> Result<(), tools::Error> {
        let stays = |it: &Finding| (Level::Warning, format!("{} stays: {}", it.path.display(), it.text));
        let effects = undone.effects.iter().map(|it| (level_of(it.outcome), it.text.clone()));
        let lines: Vec<(Level, String)> = undone.left.iter().map(stays).chain(effects).collect();
        self.log_lines(&lines)
    }

    /// What an undo has not taken back, the first of it.
    fn open(&self, undone: &run::Outcome) -> Result<Option<String>, Failure> {
        // What is no longer in the receipt is told as left: no later undo would know of it.
        let receipt = Store::new(self.root).receipt().map_err(Failure::installation)?;
        let is_ours = |it: &&Finding| receipt.entry(&it.path).is_some();
        let of_paths = undone.failed.iter().chain(undone.left.iter().filter(is_ours));
        let of_paths = of_paths.map(|it| format!("{}: {}", it.path.display(), it.text));
        let not_done = undone.effects.iter().filter(|it| it.outcome == Outcome::Failed);
        let mut all = of_paths.chain(not_done.map(|it| it.text.clone()));
        let Some(first) = all.next() else { return Ok(None) };
        Ok(Some(match all.count() {
            0 => first,
            more => format!("{first} (and {more} more: rocworker status)"),
        }))
    }

    /// Takes back what is ours; a driver of AMD's stays with the other packages of AMD's unless the options say
    /// otherwise, and stays in the receipt.
    pub(super) fn undo(&self, event: Event, force: bool) -> Result<run::Outcome, Failure> {
        let options = self.tools.options()?;
        let receipt = Store::new(self.root).receipt().map_err(Failure::installation)?;
        // An option that cannot be read is no wish to lose a driver.
        let goes = Options::read(&options).is_ok_and(|options| options.remove_driver);
        let stays = (has_driver(&receipt) && !goes).then_some(Component::Packages);
        if stays.is_some() {
            let text = "the driver stays, and with it what came from AMD's repositories (remove-driver=true takes both, \
                        and so does rocworker undo)";
            self.tools.log(Level::Info, text)?;
        }
        let active = ActiveConfig::of_file(&ConfigFile::default(), self.root);
        let config = active.asked_for().or_else(|error| {
            self.tools
                .log(Level::Warning, &format!("{error}; undo goes on without it, and restarts nothing"))?;
            without_restarts(self.root).map_err(Failure::installation)
        })?;
        let mut steps = Steps::default();
        let undone = self
            .with_run(event, &config, |run| run.undo(stays, force, &mut |told| self.step(&mut steps, &told)));
        undone.map_err(of_setup)
    }

    /// Whether a unit has its agent on this machine.
    fn is_there(&self, unit: &str) -> bool {
        self.root.exists(Path::new(AGENTS).join(format!("unit-{}", unit.replace('/', "-"))))
    }
}

/// Whether a driver of AMD's came, with which everything stays that came from AMD's repositories.
fn has_driver(receipt: &Receipt) -> bool {
    receipt.entry(&Package::present(PACKAGE).resource()).is_some()
}
