//! What is reverted when a unit goes, and by the action undo; the rest is another's, or still to end.

use std::path::Path;

use anyhow::bail;
use config::Component;
use juju::charm::{self, AGENTS, Charm, Undo};
use juju::options::Options;
use juju::tools::{self, Level};
use juju::unit_status::UnitStatus;
use packages::driver::PACKAGE;
use reconcile::{Entry, Finding, Outcome as EffectOutcome, Package};

use super::actions::REPORTS;
use super::hooks::{Ended, Machine, level_of};
use super::own_files;
use crate::daemon::features;
use crate::partition::Undoing;
use crate::run::{ConfigFile, Outcome, Phase, State, without_restarts};

/// What the configuration's folder would hold, were there anything in it.
const CONFIGURATION_FOLDER: &str = "/etc/rocworker";

impl Machine<'_> {
    pub(super) fn remove(&self) -> anyhow::Result<Ended> {
        let status = match self.revert_unless_needed() {
            Ok(()) => return Ok(Ended::default()),
            Err(error) if error.is::<tools::Error>() => return Err(error),
            Err(error) => UnitStatus::removal_failed(&error.to_string()),
        };
        // If the hook succeeded, Juju would remove the unit and its status, but the machine would keep what is left.
        self.set_status(&status)?;
        Ok(Ended { status: Some(status), is_failed: true })
    }

    /// Reverts what the charm has applied, unless another unit of a charm is on this machine still. What a person has
    /// set up, before the charm could, stays as it is.
    fn revert_unless_needed(&self) -> anyhow::Result<()> {
        let (_lock, mut charm) = self.begin()?;
        charm.units.retain(|unit| *unit != self.unit_name() && self.has_agent(unit));
        if !charm.units.is_empty() {
            charm.write(self.root)?;
            let text =
                format!("what is set up here stays: {} is on this machine too", charm.units.join(", "));
            return Ok(self.tools.log(Level::Info, &text)?);
        }
        let is_managed = charm.has_applied && !self.is_applied_since_undo(&charm)?;
        // A driver may stay without the program, as after an undo. The package's removal would revert all else, also a spec
        // that a person has `cdi generate` write.
        let needs_program = |entry: &Entry| entry.component != Component::Packages.as_ref();
        if is_managed || !State::of_receipt(self.root)?.receipt.entries.iter().any(needs_program) {
            if is_managed && self.revert_all()? {
                self.keep_package(
                    "rocworker's package stays until you remove it: it starts the worker again",
                )?;
            }
            own_files::remove_configuration(self.root, &charm)?;
            own_files::remove_copies(self.root, &mut charm)?;
        } else {
            // The package and the configuration are a part of it, whoever brought them.
            self.keep_package(
                "what is set up here stays: it was applied without the charm, and rocworker undo reverts it",
            )?;
        }
        if self.root.exists(REPORTS) {
            self.root.remove_tree(REPORTS)?;
        }
        if self.root.exists(CONFIGURATION_FOLDER) {
            self.root.remove_empty_folder(CONFIGURATION_FOLDER)?;
        }
        self.root.remove(charm::PATH)?;
        self.root.sweep(charm::PATH);
        Ok(())
    }

    /// Logs why the package stays, and forgets that the charm has installed it.
    fn keep_package(&self, why: &str) -> anyhow::Result<()> {
        self.tools.log(Level::Info, why)?;
        self.root.remove(charm::PACKAGE)?;
        Ok(())
    }

    /// Whether an effect is pending, which comes to its end by itself. Anything that stays otherwise is an error: only
    /// the program and charm.json, which are to go next, could revert it.
    fn revert_all(&self) -> anyhow::Result<bool> {
        let undone = self.undo(false)?;
        self.log_undone(&undone)?;
        if let Some(why) = first_kept(&undone) {
            let unit = self.unit_name();
            bail!("{why}; put that right on the machine, then juju resolved {unit} runs this hook again");
        }
        Ok(undone.effects.iter().any(|it| it.outcome == EffectOutcome::Pending))
    }

    /// After the action undo nothing is set up. The next hook ends an undo that was killed or could not begin, and
    /// leaves what a person has applied since.
    pub(super) fn after_action_undo(&self, charm: &mut Charm) -> anyhow::Result<UnitStatus> {
        let state = State::of_receipt(self.root)?;
        let has_driver = has_driver(&state);
        let stays = |entry: &Entry| has_driver && entry.component == Component::Packages.as_ref();
        if state.receipt.entries.iter().all(stays) {
            return Ok(UnitStatus::undone(self.unit_name(), None));
        }
        if charm.undo == Undo::Ended {
            match State::read(self.root)?.phase() {
                Phase::Applied => return Ok(UnitStatus::applied_since_undo(self.unit_name())),
                // Nothing is left of the undo: what is there came since, by `cdi generate`, and is its caller's.
                Phase::Unmanaged => return Ok(UnitStatus::undone(self.unit_name(), None)),
                Phase::Undone => {}
            }
        }
        let undone = self.undo(false)?;
        self.log_undone(&undone)?;
        self.status_after_undo(&undone, charm)
    }

    /// An undo that refused to begin changed nothing, and the next hook tries it again.
    pub(super) fn status_after_undo(
        &self,
        undone: &Outcome,
        charm: &mut Charm,
    ) -> anyhow::Result<UnitStatus> {
        let kept = first_kept(undone);
        if undone.state.is_applied() {
            return Ok(UnitStatus::undo_refused(&kept.unwrap_or_default()));
        }
        charm.undo = Undo::Ended;
        charm.write(self.root)?;
        Ok(UnitStatus::undone(self.unit_name(), kept.as_deref()))
    }

    fn log_undone(&self, undone: &Outcome) -> Result<(), tools::Error> {
        let left = undone.left.iter().map(|it| (Level::Warning, format!("{} stays: {}", it.path, it.text)));
        let effects = undone.effects.iter().map(|it| (level_of(it.outcome), it.text.clone()));
        self.log_lines(left.chain(effects))
    }

    /// Reverts what is managed; a driver of AMD's stays with the other packages of AMD's unless the options say
    /// otherwise, and stays in the receipt.
    pub(super) fn undo(&self, force: bool) -> anyhow::Result<Outcome> {
        let options = Options(self.tools.options()?);
        // An option that cannot be read is no wish to lose a driver.
        let goes = options.remove_driver().unwrap_or(false);
        let stays = (has_driver(&State::of_receipt(self.root)?) && !goes).then_some(Component::Packages);
        if stays.is_some() {
            let text = "the driver stays, and with it what came from AMD's repositories (remove-driver=true takes both, \
                        and so does rocworker undo)";
            self.tools.log(Level::Info, text)?;
        }
        let config = ConfigFile::default().asked_for(self.root).or_else(|error| {
            let text = format!("{error}; undo continues without it, and restarts nothing");
            self.tools.log(Level::Warning, &text)?;
            anyhow::Ok(without_restarts(self.root)?)
        })?;
        let run = self.pipeline(&config);
        let undoing = Undoing::begin(&run, &mut |_| ())?;
        let undone = run.undo(stays, force, &mut self.progress())?;
        let ended = undoing.end(&run, undone.failed.is_empty(), &mut |_| ());
        if let Err(error) = ended.and_then(|()| Ok(features::remove(self.root)?)) {
            self.tools.log(Level::Error, &format!("{error:#}"))?;
        }
        Ok(undone)
    }

    /// Whether a unit has its agent on this machine.
    fn has_agent(&self, unit: &str) -> bool {
        self.root.exists(Path::new(AGENTS).join(format!("unit-{}", unit.replace('/', "-"))))
    }

    /// Whether a person has applied on the machine after the action undo.
    fn is_applied_since_undo(&self, charm: &Charm) -> anyhow::Result<bool> {
        Ok(charm.undo == Undo::Ended && State::read(self.root)?.is_applied())
    }
}

/// The first thing that an undo has not reverted, in a sentence.
fn first_kept(undone: &Outcome) -> Option<String> {
    // What is no longer managed is left for good: no later undo would know of it.
    let is_managed = |it: &&Finding| undone.state.receipt.entry(&it.path).is_some();
    let paths = undone.failed.iter().chain(undone.left.iter().filter(is_managed));
    let failed = undone.effects.iter().filter(|it| it.outcome == EffectOutcome::Failed);
    let mut all = paths.map(|it| format!("{}: {}", it.path, it.text)).chain(failed.map(|it| it.text.clone()));
    let first = all.next()?;
    Some(match all.count() {
        0 => first,
        more => format!("{first} (and {more} more: rocworker status)"),
    })
}

/// Whether a driver of AMD's came, with which everything stays that came from AMD's repositories.
fn has_driver(state: &State) -> bool {
    state.receipt.entry(&Package::present(PACKAGE).resource()).is_some()
}
