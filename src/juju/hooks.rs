//! What a hook does: the options become the configuration, the machine is brought to it, and Juju is told.

use std::time::{Duration, Instant};

use reconcile::{Outcome as EffectOutcome, Progress};
use root::Root;

use super::machine::{Failure, Machine};
use super::options::{Options, Role};
use super::own_files;
use super::state::State;
use super::steps::Steps;
use super::tools::{self, Level};
use super::turn::{PATIENCE, Turn};
use super::workload::{State as WorkloadState, Workload};
use super::{Action, Event, unit_summary};
use crate::config::{self, Config};
use crate::daemon::ask::{Answer, ask};
use crate::desired;
use crate::desired::own_unit::DAEMON;
use crate::run::{self, Outcome};

/// How a hook ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// What the unit's status is now, where this hook has set it (or would have, in another charm's hook).
    pub workload: Option<Workload>,
    /// False: Juju should run the hook again.
    pub is_well: bool,
}

/// What bringing the machine to the options came to.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) workload: Workload,
    /// `None`: the action undo has been run, and nothing is brought about until apply is.
    pub(super) applied: Option<Outcome>,
}

/// Lines of the log for one hook; the history on the machine has all.
const LINES: usize = 20;
/// Where the action report puts its archives.
pub(super) const REPORTS: &str = "/var/lib/rocworker/reports";
/// Is there where systemd runs the machine (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";
/// The daemon ends within a second; systemd itself kills it after 90.
const RESTART_LIMIT: Duration = Duration::from_secs(100);

impl Machine<'_> {
    /// Runs a hook or an action. What a person has to put right is told by the unit's status, or fails the action.
    pub fn run(&self, event: Event) -> Result<Ended, tools::Error> {
        let ran = match event {
            Event::Nothing | Event::Stop => Ok(Ended { workload: None, is_well: true }),
            Event::Remove => self.remove(event),
            Event::Action(action) => self.action(action),
            Event::Install
            | Event::ConfigChanged
            | Event::UpdateStatus
            | Event::UpgradeCharm
            | Event::Start => {
                let brought = self.turn().and_then(|turn| self.bring(event, &turn));
                let workload = match brought {
                    Ok(brought) => brought.workload,
                    Err(failure) => failed(failure)?,
                };
                self.tell(event, &workload).map(|()| Ended { workload: Some(workload), is_well: true })
            }
        };
        if let Err(error) = &ran {
            // One tool that fails does not say that all do.
            self.tools.log(Level::Error, &format!("{}: {error}", event.described())).ok();
        }
        ran
    }

    /// Sets the unit's status, and logs why it is not what somebody wants it to be.
    pub(super) fn tell(&self, event: Event, workload: &Workload) -> Result<(), tools::Error> {
        if workload.state == WorkloadState::Blocked {
            self.tools.log(Level::Error, &format!("{}: {}", event.described(), workload.text))?;
        }
        self.tools.status(workload)
    }

    /// Waits until no other hook is at work on this machine, and has Juju show that.
    pub(super) fn turn(&self) -> Result<Turn, Failure> {
        let mut steps = Steps::default();
        let mut waits = |text| self.step(&mut steps, &Progress::Waits(text));
        Turn::take(self.root, PATIENCE, &mut waits).map_err(Failure::installation)
    }

    /// Writes the configuration that the options mean, and applies it.
    pub(super) fn bring(&self, event: Event, _turn: &Turn) -> Result<Brought, Failure> {
        let (options, role, text) = self.wanted()?;
        let config = parsed(self.root, &text)?;
        let mut state = State::read(self.root).map_err(Failure::installation)?;
        self.join(&mut state)?;
        if event != Event::Action(Action::Apply)
            && let Some(workload) = self.of_another(&state, &config)?
        {
            return Ok(Brought { workload, applied: None });
        }
        // Nobody has asked for anything: what the daemon keeps while a GPU resets is not to go by this.
        if event == Event::UpdateStatus && self.keeps_tags() {
            return Ok(Brought { workload: Workload::settling(), applied: None });
        }
        own_files::put_configuration(self.root, &mut state, &text).map_err(of_file)?;
        if own_files::put_program(self.root, &mut state, &self.running).map_err(of_file)? {
            self.take_over(event, &mut state)?;
        }
        if matches!(event, Event::Install | Event::UpgradeCharm) {
            self.tools.version(env!("CARGO_PKG_VERSION"))?;
        }
        if state.is_taken_back {
            return Ok(Brought { workload: self.held(event, &mut state)?, applied: None });
        }
        let applied = self.apply_for(event, &config, &mut state)?;
        self.log_applied(event, &applied)?;
        if applied.effects.iter().all(|it| it.outcome != EffectOutcome::Pending) {
            own_files::yield_to_package(self.root, &mut state).map_err(of_file)?;
        }
        let summary = unit_summary::unit_summary(self, &options, role, &config, &applied)?;
        Ok(Brought { workload: Workload::of(&summary), applied: Some(applied) })
    }

    /// Whether the daemon keeps tags of the worker whose GPUs have just gone.
    fn keeps_tags(&self) -> bool {
        matches!(ask(self.root), Some(Answer::Report(report)) if report.tags_held_until.is_some())
    }

    /// Applies, and remembers before the first change that it was the charm that did: whoever kills this leaves what the
    /// hook remove takes back.
    fn apply_for(&self, event: Event, config: &Config, state: &mut State) -> Result<Outcome, Failure> {
        let is_first = !state.has_applied;
        if is_first {
            state.has_applied = true;
            state.write(self.root).map_err(Failure::installation)?;
        }
        let mut steps = Steps::default();
        let applied =
            self.with_run(event, config, |run| run.apply(None, &mut |told| self.step(&mut steps, &told)));
        // Refused before it changed anything: what stands here is still another's.
        if is_first && applied.as_ref().is_err_and(|error| !matches!(error, run::Error::Midway { .. })) {
            state.has_applied = false;
            state.write(self.root).map_err(Failure::installation)?;
        }
        applied.map_err(of_setup)
    }

    fn wanted(&self) -> Result<(Options, Role, String), Failure> {
        let of_option = |error: super::WrongOption| Failure::Config(error.to_string());
        let options = Options::read(&self.tools.options()?).map_err(of_option)?;
        let role = self.role(&options);
        let text = options.configuration(role).map_err(of_option)?;
        Ok((options, role, text))
    }

    /// Has the daemon go on by the program that has come: the one that runs would put right what this build writes.
    fn take_over(&self, event: Event, state: &mut State) -> Result<(), Failure> {
        if let Some(programs) = self.told_programs().filter(|_| self.root.exists(SYSTEMD)) {
            let argv = ["systemctl", "try-restart", DAEMON.name];
            if let Err(error) = programs.run(&argv, RESTART_LIMIT) {
                let text =
                    format!("{}: the program before this one may run still: {error}", event.described());
                return Ok(self.tools.log(Level::Warning, &text)?);
            }
        }
        own_files::taken_over(self.root, state).map_err(of_file)
    }

    /// Remembers that this unit's charm is here.
    fn join(&self, state: &mut State) -> Result<(), Failure> {
        let Some(unit) = &self.environment.unit else { return Ok(()) };
        if !state.units.contains(unit) {
            state.units.push(unit.clone());
            state.write(self.root).map_err(Failure::installation)?;
        }
        Ok(())
    }

    /// Has Juju show what is being done.
    pub(super) fn step(&self, steps: &mut Steps, progress: &Progress<'_>) {
        let Some(text) = steps.hear(progress, Instant::now()) else { return };
        if let Err(error) = self.tools.status(&Workload::new(WorkloadState::Maintenance, &text)) {
            // The end is told again, and there it counts.
            tracing::warn!("{error}");
            steps.silence();
        }
    }

    fn log_applied(&self, event: Event, applied: &Outcome) -> Result<(), tools::Error> {
        let mut lines = Vec::new();
        if !applied.changes.is_empty() {
            let of = event.described();
            let count = match applied.changes.len() {
                1 => "1 change".to_owned(),
                more => format!("{more} changes"),
            };
            lines.push((
                Level::Info,
                format!("{of}: {count} made on the machine, which rocworker history lists"),
            ));
            let notes = applied.notes.iter().filter(|note| !note.problem);
            lines.extend(notes.map(|note| (Level::Info, format!("{}: {}", note.about, note.text))));
        }
        for (what, findings) in
            [("failed", &applied.failed), ("blocked", &applied.blocked), ("contested", &applied.contested)]
        {
            let line = |it: &reconcile::Finding| {
                (Level::Warning, format!("{}: {what}: {}", it.path.display(), it.text))
            };
            lines.extend(findings.iter().map(line));
        }
        let problems = applied.notes.iter().filter(|note| note.problem);
        lines.extend(problems.map(|note| (Level::Warning, format!("{}: {}", note.about, note.text))));
        let effects = applied.effects.iter().filter(|it| it.outcome != EffectOutcome::Skipped);
        lines.extend(effects.map(|it| (level_of(it.outcome), it.text.clone())));
        self.log_lines(&lines)
    }

    pub(super) fn log_lines(&self, lines: &[(Level, String)]) -> Result<(), tools::Error> {
        lines.iter().take(LINES).try_for_each(|(level, text)| self.tools.log(*level, text))?;
        match lines.len().checked_sub(LINES) {
            Some(more @ 1..) => {
                self.tools.log(Level::Info, &format!("and {more} more, which rocworker status tells"))
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn level_of(outcome: EffectOutcome) -> Level {
    if outcome == EffectOutcome::Failed { Level::Warning } else { Level::Info }
}

fn failed(failure: Failure) -> Result<Workload, tools::Error> {
    match failure {
        Failure::Tools(error) => Err(error),
        Failure::Config(text) => Ok(Workload::config_failed(&text)),
        Failure::Installation(text) => Ok(Workload::installation_failed(&text)),
    }
}

pub(super) fn parsed(root: &Root, text: &str) -> Result<Config, Failure> {
    Config::parse(&root.shown(config::PATH), text).map_err(|error| Failure::Config(error.to_string()))
}

pub(super) fn of_file(error: own_files::Error) -> Failure {
    match error {
        by_hand @ own_files::Error::ByHand(_) => Failure::Config(by_hand.to_string()),
        other => Failure::installation(other),
    }
}

/// What an option means on this machine is the option's fault; everything else is the machine's.
pub(super) fn of_setup(error: run::Error) -> Failure {
    match error {
        run::Error::Desired(desired::Error::Config(config::Error::Wrong { problem, .. })) => {
            Failure::Config(problem)
        }
        other => Failure::installation(other),
    }
}
