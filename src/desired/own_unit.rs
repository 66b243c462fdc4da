//! rocworker's own units: the two that run before engines start, so that cards have their modes and no engine finds what
//! was true at the last start; the one that maintains the machine while it runs; and the exporter of metrics.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use config::{Component, Config};
use host::facts::Facts;
use host::unit::Unit;
use minijinja::{Value, context};
use reconcile::{Action, Content, Desired, Effect, Kind, Stage};
use render::{self, Templates};

use crate::exporter_unit;

/// The folders into which the daemon's unit always lets it write.
const WRITABLE: [&str; 6] = ["/etc", "/var/lib", "/run", "/dev", "/sys/devices", "/usr/local/lib"];

/// How much longer the boot unit may take than its wait for GPUs: each of two looks may wait a minute for an apply
/// under way.
const BEYOND_THE_WAIT_S: u32 = 120;

/// How much longer the partition unit may take: to unload the driver, and to load it again.
const RELOAD_S: u32 = 900;

/// A unit that runs a program of rocworker's.
#[derive(Debug)]
pub struct OwnUnit {
    pub component: Component,
    pub name: &'static str,
    pub file: &'static str,
    /// The link that `systemctl enable` would make.
    link: &'static str,
    stage: Stage,
    template: &'static str,
    reason: &'static str,
    /// What it runs, behind the program's name; the exporter's are by the configuration.
    arguments: &'static [&'static str],
    /// How long it may take to start, beyond the wait for GPUs, in seconds.
    beyond_the_wait_s: u32,
    /// How a person is without it.
    without: &'static str,
    /// Whether the unit runs until it is stopped.
    is_service: bool,
}

pub static BOOT: OwnUnit = OwnUnit {
    component: Component::Boot,
    name: "rocworker-boot.service",
    file: "/etc/systemd/system/rocworker-boot.service",
    link: "/etc/systemd/system/multi-user.target.wants/rocworker-boot.service",
    stage: Stage::Shape,
    template: render::BOOT,
    reason: "engines find the GPUs of this start when they start",
    arguments: &["boot"],
    beyond_the_wait_s: BEYOND_THE_WAIT_S,
    without: "set `boot: {unit: false}`",
    is_service: false,
};

pub static PARTITION: OwnUnit = OwnUnit {
    component: Component::PartitionUnit,
    name: "rocworker-partition.service",
    file: "/etc/systemd/system/rocworker-partition.service",
    link: "/etc/systemd/system/multi-user.target.wants/rocworker-partition.service",
    stage: Stage::Shape,
    template: render::PARTITION,
    reason: "no kernel keeps the cards' modes over a start of the machine",
    arguments: &["boot-partitions"],
    beyond_the_wait_s: RELOAD_S,
    without: "remove partitions.profile",
    is_service: false,
};

pub static DAEMON: OwnUnit = OwnUnit {
    component: Component::Daemon,
    name: "rocworker.service",
    file: "/etc/systemd/system/rocworker.service",
    link: "/etc/systemd/system/multi-user.target.wants/rocworker.service",
    stage: Stage::Expose,
    template: render::DAEMON,
    reason: "it follows the machine's GPUs while it runs",
    arguments: &["serve"],
    beyond_the_wait_s: 0,
    without: "set `daemon: {unit: false}`",
    is_service: true,
};

pub static EXPORTER: OwnUnit = OwnUnit {
    component: Component::Exporter,
    name: exporter_unit::NAME,
    file: exporter_unit::FILE,
    link: "/etc/systemd/system/multi-user.target.wants/rocm-exporter.service",
    stage: Stage::Expose,
    template: render::EXPORTER,
    reason: "Prometheus reads the GPUs' metrics from it",
    arguments: &[],
    beyond_the_wait_s: 0,
    without: "set `exporter: {unit: false}`",
    is_service: true,
};

impl OwnUnit {
    /// Whether this machine is to have it: systemd starts the machine, and it has a card of AMD's, usable or not.
    #[must_use]
    pub fn is_wanted(&self, config: &Config, facts: &Facts) -> bool {
        let is_on = match self.component {
            Component::Boot => config.boot.unit.is_on(),
            Component::PartitionUnit => config.partitions.profile.is_some(),
            Component::Exporter => config.exporter.unit.is_on(),
            _ => config.daemon.unit.is_on(),
        };
        is_on && facts.systemd && facts.has_amd()
    }

    /// What should be so for it. `program`: what it is to run, or why nothing can be named that stays.
    ///
    /// # Errors
    /// When the template does not give a unit that runs the program.
    pub fn actions(
        &self,
        config: &Config,
        facts: &Facts,
        templates: &Templates,
        program: &Result<PathBuf, String>,
    ) -> Result<Desired, render::Error> {
        if !self.is_wanted(config, facts) {
            return Ok(Desired::default());
        }
        let program = match program {
            Ok(program) => program,
            Err(why) => return Ok(self.without_program(why)),
        };
        let limit_s = config.boot.wait_s + self.beyond_the_wait_s;
        let context = context! { limit_s, folders => folders(config), units => &config.partitions.units };
        let arguments = self.arguments.iter().map(|it| (*it).to_owned()).collect();
        let line = Line { program, arguments, context };
        self.written(templates, &line, self.stopped())
    }

    /// The desired state where no program was found for the unit: a note.
    pub(super) fn without_program(&self, why: &str) -> Desired {
        let mut desired = Desired::default();
        let text = format!("{} is not written: {why}, then apply again; or {}", self.name, self.without);
        desired.note(self.component.as_ref(), text);
        desired
    }

    /// What its end makes necessary where nothing takes its place.
    pub(super) fn stopped(&self) -> Effect {
        Effect::Stop { unit: self.name.to_owned() }
    }

    /// The unit and its link. `back`: what its end makes necessary.
    pub(super) fn written(
        &self,
        templates: &Templates,
        line: &Line<'_>,
        back: Effect,
    ) -> Result<Desired, render::Error> {
        let (program, arguments) = (line.program.display().to_string(), line.arguments.join(" "));
        let context = context! { program => &program, arguments => &arguments, ..line.context.clone() };
        let text = templates.render(self.template, context)?;
        let runs = Unit::parse(Path::new(self.file), &text).exec_start;
        if runs.split_first().is_none_or(|(first, rest)| *first != program || rest != line.arguments) {
            let problem = format!("a unit that does not run `{program} {arguments}`");
            return Err(templates.unfit(self.template, problem));
        }
        let mut unit = Action::file(self.stage, self.file, text, self.reason).with(Effect::SystemdReload);
        if self.is_service {
            let start = Effect::Start { unit: self.name.to_owned() };
            unit = unit.with(start).reverted_with(vec![Effect::SystemdReload, back]);
        }
        let mut desired = Desired::default();
        desired.push(unit);
        let link = Kind::Owned(Content::Link { target: self.file.into() });
        let link = Action::new(self.stage, self.link, link, "systemd runs it at each start");
        desired.push(link.with(Effect::SystemdReload));
        Ok(desired.of(self.component))
    }
}

/// What a unit runs, and what its template says beside that.
pub(super) struct Line<'a> {
    pub(super) program: &'a Path,
    pub(super) arguments: Vec<String>,
    pub(super) context: Value,
}

/// The folders outside [`WRITABLE`] in which the daemon may have to write. By the configuration alone: a unit that
/// changed with what is there now would begin anew with each GPU that goes.
fn folders(config: &Config) -> Vec<String> {
    let of_engines = engines::ALL.iter().filter_map(|engine| Some(&(engine.settings)(config)?.config));
    let files = of_engines.chain([&config.cdi.path]);
    let folders = files.filter_map(|path| path.parent()?.to_str());
    // What a unit's line takes as it is: no blank, no quote, no specifier.
    let is_plain = |folder: &str| {
        folder.starts_with('/')
            && folder.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._+-".contains(&byte))
    };
    let is_known = |folder: &str| WRITABLE.iter().any(|known| Path::new(folder).starts_with(known));
    let found: BTreeSet<&str> = folders.filter(|it| is_plain(it) && !is_known(it)).collect();
    found.into_iter().map(str::to_owned).collect()
}
