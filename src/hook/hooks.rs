//! What a hook does: read the options, write the configuration, apply it as `rocworker apply` does, set the unit's
//! status.

use std::path::Path;
use std::time::{Duration, Instant};

use config::selection::select;
use config::{self, Config};
use engines::Versions;
use engines::concourse::{Concourse, UNIT};
use host::facts::Facts;
use host::timestamp::Timestamp;
use juju::Event;
use juju::charm::{self, Charm, Undo};
use juju::options::{Options, Role, UNTAGGED, WrongConfig, has_unit};
use juju::tools::{self, Level, Tools};
use juju::unit_status::{Steps, UnitStatus, Workload, first_remedy};
use printable::counted;
use reconcile::command::Programs;
use reconcile::{Outcome as EffectOutcome, Progress};
use root::{Lock, Root};

use super::after_apply::{self, Found, reboot};
use super::own_files;
use crate::daemon::socket::{Answer, ask};
use crate::desired;
use crate::desired::own_unit::EXPORTER;
use crate::doctor;
use crate::run::{self, Outcome, Own, Run, State, applied_elsewhere};

/// The machine on which a hook runs, and the hook tools of Juju.
#[derive(Debug)]
pub struct Machine<'a> {
    pub root: &'a Root,
    /// Runs programs with the model's proxies in their environment. `None` beneath another Root than `/`.
    pub programs: Option<Programs>,
    pub tools: Tools,
    /// The hook or action that Juju runs.
    pub event: Event,
    /// `rocworker/0`, where Juju says so.
    pub unit: Option<String>,
    pub now: Timestamp,
    /// Who called, as far as the machine shows.
    pub caller: String,
}

/// How a hook ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// The unit's status, where the hook has set it (or would have, in another charm's hook).
    pub status: Option<UnitStatus>,
    /// Juju should run the hook again.
    pub is_failed: bool,
}

/// How long a hook waits for an apply under way: as long as an apply waits for another.
const PATIENCE: Duration = Duration::from_secs(60);
/// Lines of the log for one hook; the history on the machine has all.
const LINES: usize = 20;
/// The unit of Concourse's web node, as the Concourse charm has it.
const WEB_UNIT: &str = "concourse-server.service";

impl Machine<'_> {
    /// Runs a hook or an action. What a person has to correct becomes the unit's status, or fails the action.
    ///
    /// # Errors
    /// Juju's tools do not answer.
    pub fn run(&self) -> anyhow::Result<Ended> {
        let ran = match self.event {
            Event::Other | Event::Stop => Ok(Ended::default()),
            Event::Remove => self.remove(),
            Event::Install
            | Event::ConfigChanged
            | Event::UpdateStatus
            | Event::UpgradeCharm
            | Event::Start => self.hook(),
            Event::Detect => self.answer(Ok(self.detect())),
            Event::Doctor => self.answer(self.doctor()),
            Event::Status => self.answer(self.status()),
            Event::Plan => self.answer(self.plan()),
            Event::Apply => self.answer(self.apply_again()),
            Event::Undo => self.answer(self.action_undo()),
            Event::Report => self.answer(self.report()),
            Event::LeaseList => self.answer(self.lease_list()),
        };
        if let Err(error) = &ran {
            // A failed tool may be the cause: juju-log may work all the same.
            self.tools.log(Level::Error, &format!("{}: {error}", self.event.described())).ok();
        }
        ran
    }

    fn hook(&self) -> anyhow::Result<Ended> {
        let followed = self.begin().and_then(|(_lock, mut charm)| self.follow_options(&mut charm));
        let status = match followed {
            Ok((status, _)) => status,
            Err(error) if error.is::<tools::Error>() => return Err(error),
            Err(error) => UnitStatus::failed(&error),
        };
        self.set_status(&status)?;
        Ok(Ended { status: Some(status), is_failed: false })
    }

    /// Writes the configuration that the options mean, and applies it: the unit's status, and what was applied, if
    /// anything was.
    pub(super) fn follow_options(&self, charm: &mut Charm) -> anyhow::Result<(UnitStatus, Option<Outcome>)> {
        let options = Options(self.tools.options()?);
        let role = self.role(&options)?;
        let config = options.configuration(role, &self.root.shown(config::PATH))?;
        if let Some(unit) = &self.unit
            && !charm.units.contains(unit)
        {
            charm.units.push(unit.clone());
            charm.write(self.root)?;
        }
        if self.event != Event::Apply
            && let Some(command) = self.set_up_by(charm, &config)?
        {
            return Ok((UnitStatus::set_up_by(&command, self.unit_name()), None));
        }
        // No operator has asked for anything, and the daemon keeps the tags while a GPU resets.
        if self.event == Event::UpdateStatus
            && matches!(ask(self.root), Some(Answer::Report(it)) if it.tags_held_until.is_some())
        {
            return Ok((UnitStatus::tags_held(), None));
        }
        own_files::put_configuration(self.root, charm, &config)?;
        if matches!(self.event, Event::Install | Event::UpgradeCharm) {
            self.tools.version(env!("CARGO_PKG_VERSION"))?;
        }
        if charm.undo != Undo::None {
            own_files::remove_copies(self.root, charm)?;
            self.follow_port(charm, &config)?;
            return Ok((self.after_action_undo(charm)?, None));
        }
        let applied = self.apply(&config, charm)?;
        self.log_applied(&applied)?;
        self.follow_port(charm, &config)?;
        own_files::remove_copies(self.root, charm)?;
        let status = after_apply::status(&self.found(role, &config, &applied)?, &applied);
        Ok((status, Some(applied)))
    }

    /// Looks at the machine after an apply.
    fn found(&self, role: Role, config: &Config, applied: &Outcome) -> anyhow::Result<Found> {
        let Self { root, now, .. } = *self;
        let (programs, memory) = (self.programs.as_ref(), State::read(root)?.memory);
        let mut versions = Versions::new(root, programs, memory.versions).at(now);
        let worker = Concourse::read(root, &mut versions).worker;
        let facts = Facts::read(root).remembering(memory.pinned);
        let gpus = select(config, &facts)?.gpus.len();
        let mut why_no_gpu = None;
        if gpus == 0 && config.gpus.is_on() {
            let beside = Own::find().beside;
            let examine = || doctor::examine(root, config, &facts, programs, beside.as_deref(), now).checks;
            why_no_gpu = reboot(applied).map(ToString::to_string).or_else(|| first_remedy(&examine()));
        }
        Ok(Found {
            role,
            version: worker.and_then(|worker| worker.version.ok()),
            gpus,
            off: config.gpus.off(),
            lacks_worker: role == Role::Worker && !has_unit(root, UNIT),
            why_no_gpu,
        })
    }

    /// Applies, and remembers before the first change that the charm did: after a kill, the hook remove reverts it.
    fn apply(&self, config: &Config, charm: &mut Charm) -> anyhow::Result<Outcome> {
        let is_first = !charm.has_applied;
        if is_first {
            charm.has_applied = true;
            charm.write(self.root)?;
        }
        let applied = self.pipeline(config).apply(None, &mut self.progress());
        // Refused before its first change: what is set up here is still another's.
        if is_first && applied.as_ref().is_err_and(|error| !matches!(error, run::Error::Midway { .. })) {
            charm.has_applied = false;
            charm.write(self.root)?;
        }
        applied.map_err(|error| match error {
            run::Error::Desired(desired::Error::Config(config::Error::Wrong { problem, .. })) => {
                WrongConfig(problem).into()
            }
            run::Error::Desired(desired::Error::Undecided { .. }) => WrongConfig(UNTAGGED.to_owned()).into(),
            other => other.into(),
        })
    }

    /// Waits until no other hook is at work on this machine, and reads what the charm remembers.
    pub(super) fn begin(&self) -> anyhow::Result<(Lock, Charm)> {
        let mut progress = self.progress();
        let lock = charm::lock(self.root, PATIENCE, &mut |text| progress(Progress::Waits(text)))?;
        Ok((lock, Charm::read(self.root)?))
    }

    /// The pipeline that a person's commands run too.
    pub(super) fn pipeline<'r>(&'r self, config: &'r Config) -> Run<'r> {
        let caller = format!("{}, for {}'s {}", self.caller, self.unit_name(), self.event.described());
        Run {
            root: self.root,
            config,
            programs: self.programs.as_ref(),
            own: Own::find(),
            now: self.now,
            caller,
        }
    }

    /// Shows Juju what is being done, as often as it should hear of it.
    pub(super) fn progress(&self) -> impl FnMut(Progress<'_>) {
        let mut steps = Steps::default();
        move |progress| {
            let Some(status) = steps.due(&progress, Instant::now()) else { return };
            if let Err(error) = self.tools.status(&status) {
                // The end sets the status again, and there a failure counts.
                tracing::warn!("{error}");
                steps.is_silent = true;
            }
        }
    }

    /// Sets the unit's status, and logs what blocks it.
    pub(super) fn set_status(&self, status: &UnitStatus) -> Result<(), tools::Error> {
        if status.state == Workload::Blocked {
            self.tools.log(Level::Error, &format!("{}: {}", self.event.described(), status.text))?;
        }
        self.tools.status(status)
    }

    /// The role that the option names, else the role of the Concourse unit that exists.
    fn role(&self, options: &Options) -> Result<Role, WrongConfig> {
        Ok(match options.role()? {
            Some(role) => role,
            None if has_unit(self.root, UNIT) => Role::Worker,
            None if has_unit(self.root, WEB_UNIT) => Role::Web,
            None => Role::Machine,
        })
    }

    /// The unit's name; what another charm's hook without one is called.
    pub(super) fn unit_name(&self) -> &str {
        self.unit.as_deref().unwrap_or("UNIT")
    }

    /// The command by which a person set the machine up: before the charm came, or since by a configuration of another
    /// place, which may withhold what the charm's gives. `None`: the machine is the charm's to apply.
    fn set_up_by(&self, charm: &Charm, config: &Config) -> anyhow::Result<Option<String>> {
        if charm.undo != Undo::None {
            return Ok(None);
        }
        let state = State::read(self.root)?;
        if !state.is_applied() {
            return Ok(None);
        }
        Ok(match applied_elsewhere(self.root, config, &state.memory) {
            Some((path, _)) => Some(format!("rocworker --config {} apply", path.display())),
            None => (!charm.has_applied).then(|| "rocworker apply".to_owned()),
        })
    }

    /// Has Juju open the port of an exporter that answers other machines, and close ports that it opened before. Each
    /// hook repeats this, since Juju discards the requests of a hook that fails.
    pub(super) fn follow_port(&self, charm: &mut Charm, config: &Config) -> anyhow::Result<()> {
        let listen = config.exporter.listen;
        let port = (!listen.ip().is_loopback() && self.has_exporter()?).then(|| listen.port());
        for old in charm.ports.iter().filter(|old| port != Some(**old)) {
            self.tools.close_port(*old)?;
        }
        let Some(port) = port else { return Ok(()) };
        if !charm.ports.contains(&port) {
            charm.ports.push(port);
            charm.write(self.root)?;
        }
        Ok(self.tools.open_port(port)?)
    }

    /// Whether the exporter's unit is rocworker's.
    fn has_exporter(&self) -> anyhow::Result<bool> {
        Ok(State::of_receipt(self.root)?.receipt.entry(Path::new(EXPORTER.file)).is_some())
    }

    fn log_applied(&self, applied: &Outcome) -> Result<(), tools::Error> {
        let count = applied.changes.len();
        let changes = (count > 0).then(|| {
            let (of, count) = (self.event.described(), counted(count, "change"));
            (Level::Info, format!("{of}: {count} made on the machine, which rocworker history lists"))
        });
        let findings =
            [("failed", &applied.failed), ("blocked", &applied.blocked), ("contested", &applied.contested)];
        let findings = findings.into_iter().flat_map(|(what, of)| {
            of.iter().map(move |it| (Level::Warning, format!("{}: {what}: {}", it.path, it.text)))
        });
        let notes = applied.notes.iter().filter(|note| note.problem || count > 0).map(|note| {
            let level = if note.problem { Level::Warning } else { Level::Info };
            (level, format!("{}: {}", note.about, note.text))
        });
        let effects = applied.effects.iter().filter(|it| it.outcome != EffectOutcome::Skipped);
        let effects = effects.map(|it| (level_of(it.outcome), it.text.clone()));
        self.log_lines(changes.into_iter().chain(findings).chain(notes).chain(effects))
    }

    pub(super) fn log_lines(
        &self,
        lines: impl IntoIterator<Item = (Level, String)>,
    ) -> Result<(), tools::Error> {
        let mut lines = lines.into_iter();
        lines.by_ref().take(LINES).try_for_each(|(level, text)| self.tools.log(level, &text))?;
        match lines.count() {
            0 => Ok(()),
            more => self.tools.log(Level::Info, &format!("and {more} more: see rocworker status")),
        }
    }
}

pub(super) fn level_of(outcome: EffectOutcome) -> Level {
    if outcome == EffectOutcome::Failed { Level::Warning } else { Level::Info }
}
