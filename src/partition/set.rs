//! A switch of cards: units stop, processes leave, modes are written, the driver is loaded again where a memory mode takes
//! that, and everything is read back. Each phase is on disk before it begins, and each can be done twice.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use inventory::PciAddress;
use inventory::partitioning::{Aim, Compute, Memory, Steps, Switch};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reconcile::command::Programs;
use reconcile::{Action, Kind, Stage, Uptime, Value, runs};
use root::Root;

use super::holders::in_the_way;
use super::progress::{CardGoal, Goal, Phase, Progress};
use super::{Holder, Look, Plan, Refused, last_switch, rivals};
use crate::run::Run;
use config::{Component, Partitions};

const LOCK: &str = "/var/lib/rocworker/partition.lock";

/// How long a switch waits for another one to end: no longer than for a look of the daemon's ([`is_at_work`]).
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks at what is to end or to come.
const PAUSE: Duration = Duration::from_millis(250);

/// How long a process has between SIGTERM and SIGKILL, and how long KFD has afterwards.
const GRACE: Duration = Duration::from_secs(10);

/// How long modprobe may take: the driver looks at each card for some seconds.
const MODPROBE: Duration = Duration::from_secs(300);

/// How long cards may take to be there again after that.
const COMING: Duration = Duration::from_secs(60);

/// What errors of a compute mode's file mean (amdgpu_gfx.c, `amdgpu_gfx_set_compute_partition`).
const COMPUTE: &[(i32, &str)] = &[
    (
        nix::libc::EBUSY,
        "KFD still has a process, of this card or of another: `rocworker partition show` names it",
    ),
    (
        nix::libc::EINVAL,
        "the driver does not take this mode under the card's memory mode: `rocworker partition show` lists those that it \
         takes",
    ),
    (nix::libc::EPERM, "the card is being reset: wait for the end, and see `rocworker health`"),
    (
        nix::libc::EIO,
        "KFD did not come back after the switch: see journalctl -k, then load the driver again or restart the machine",
    ),
];

/// What errors of a memory mode's file mean (amdgpu_gmc.c, `current_memory_partition_store`).
const MEMORY: &[(i32, &str)] = &[
    (nix::libc::EINVAL, "the driver does not have this memory mode for the card"),
    (nix::libc::EPERM, "the card is being reset: wait for the end, and see `rocworker health`"),
    (nix::libc::EOPNOTSUPP, "the driver takes no memory mode of virtual functions and APUs"),
];

/// What a switch may do.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Whether the driver may be loaded again.
    pub reload: bool,
    /// How long processes may take to leave the cards.
    pub wait: Duration,
    /// Whether processes that have not left by then are killed.
    pub kill: bool,
    /// Whether the configuration's units stop meanwhile, and the switch waits until they have started again.
    pub stops_units: bool,
}

/// What a person hears of a switch under way.
#[derive(Debug)]
pub enum News<'a> {
    Phase(Phase),
    /// What is waited for.
    Waits(&'a [Holder]),
    /// What was done.
    Done(String),
}

/// Switches cards to a goal. `None`: each card was as the goal asks. `publish`: tells engines of the devices, before units
/// start that use them.
///
/// # Errors
/// Nothing was changed, or a phase failed: the sentence says what is true now.
pub fn set(
    run: &Run<'_>,
    partitions: &Partitions,
    goal: &Goal,
    options: Options,
    publish: &dyn Fn() -> anyhow::Result<()>,
    news: &mut dyn FnMut(News<'_>),
) -> anyhow::Result<Option<Progress>> {
    let root = run.root;
    let _lock = root.lock(LOCK, PATIENCE).context("another switch of cards may be at work")?;
    let last = last_switch(root).map_err(|problem| anyhow!(problem))?;
    if let Some(rival) = rivals(root).first() {
        bail!("{rival}");
    }
    let left = last.clone().filter(|last| last.phase != Phase::Succeeded);
    let mut look = Look::at(root);
    if let Some(left) = left.as_ref().filter(|left| left.cards.iter().any(|card| !is_driven(&look, card.pci)))
    {
        if !options.reload && !options.stops_units {
            bail!(
                "amdgpu does not drive every card of the switch that was killed: `{}` loads it",
                goal.command()
            );
        }
        load(run, &left.cards, news)?;
        look = Look::at(root);
    }
    let entries = match goal {
        Goal::Profile(name) => partitions.profiles.get(name).cloned(),
        Goal::Reset => last.as_ref().map(|last| last.of_before(&look.cards)),
    };
    let entries = entries.ok_or_else(|| anyhow!("{goal} is nothing that can be set"))?;
    let plan = Plan::make(&look, partitions, &entries);
    let plan = plan.map_err(|Refused(why)| anyhow!("nothing was changed: {}", why.join("; ")))?;
    let boot = Uptime::boot(root);
    let mut progress = Progress::begun(goal.clone(), boot, run.now.to_string(), goals(&plan.aims, &look));
    if let Some(last) = &last {
        progress.before.clone_from(&last.before);
    }
    if let Some(left) = left.clone() {
        progress.keep(left);
    }
    let steps = progress.steps(&look);
    if steps.is_empty() && left.is_none() {
        // From now on the cards are to stay as this goal asks, whatever the last one was.
        if last.is_some_and(|last| last.goal != *goal) {
            progress.phase = Phase::Succeeded;
            progress.write(root)?;
        }
        return Ok(None);
    }
    if steps.needs_reload() && !options.reload {
        bail!(
            "nothing was changed: {goal} changes a memory mode, which takes effect when amdgpu is loaded again; that stops every \
             card of the driver: give --reload{}",
            if *goal == Goal::Reset {
                ""
            } else {
                ", or for each start of the machine set partitions.reload: boot"
            }
        );
    }
    let mut switch = Running { run, options, progress, news, wanted_units: &plan.units };
    let switched = if steps.is_empty() { switch.verify() } else { switch.through(&steps) };
    let has_written = switch.progress.phase >= Phase::Applying || left.is_some();
    // A switch that failed may have changed some cards.
    let published = if has_written { publish() } else { Ok(()) };
    let switched = switched.and(published);
    let started = switch.start_units();
    let problem = match (switched, started) {
        (Ok(()), Ok(())) => {
            switch.enter(Phase::Succeeded)?;
            if *goal == Goal::Reset {
                Progress::forget(root)?;
            }
            return Ok(Some(switch.progress));
        }
        (Err(error), Ok(())) if !has_written => {
            // The cards are as they were, and so is what is known of the last switch.
            last.map_or_else(|| Ok(Progress::forget(root)?), |last| last.write(root))?;
            bail!("nothing was changed: {error:#}");
        }
        (Err(error), Ok(())) => format!("{error:#}; {}", switch.truth()),
        (Ok(()), Err(units)) => format!("{units:#}; {}", switch.truth()),
        (Err(error), Err(units)) => format!("{error:#}; {units:#}; {}", switch.truth()),
    };
    switch.progress.problem = Some(problem.clone());
    match switch.enter(Phase::Failed) {
        Ok(()) => Err(anyhow!(problem)),
        Err(error) => Err(error.context(problem)),
    }
}

fn is_driven(look: &Look, pci: PciAddress) -> bool {
    look.cards.iter().any(|card| card.pci == pci && card.compute.is_ok())
}

/// Loads the driver, and waits until it drives each card.
fn load(run: &Run<'_>, cards: &[CardGoal], news: &mut dyn FnMut(News<'_>)) -> anyhow::Result<()> {
    let programs = run.programs.ok_or_else(|| anyhow!("the driver is loaded on the running machine only"))?;
    programs.run(&["modprobe", "amdgpu"], MODPROBE).context(
        "the driver is unloaded and cannot be loaded: journalctl -k says why; no card works until it is",
    )?;
    let until = Instant::now() + COMING;
    loop {
        let look = Look::at(run.root);
        let missing = cards.iter().map(|goal| goal.pci).filter(|pci| !is_driven(&look, *pci));
        let missing: Vec<String> = missing.map(|pci| pci.to_string()).collect();
        if missing.is_empty() {
            news(News::Done("amdgpu was loaded".to_owned()));
            return Ok(());
        }
        if Instant::now() >= until {
            bail!(
                "the driver is loaded, and after {} s it does not drive {}: journalctl -k says why; remove \
                 /var/lib/rocworker/partition.json if the card is gone for good",
                COMING.as_secs(),
                missing.join(", ")
            );
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether a switch is under way: what differs meanwhile is no news.
#[must_use]
pub fn is_at_work(root: &Root) -> bool {
    matches!(root.lock(LOCK, Duration::ZERO), Err(root::Error::Locked { .. }))
}

/// Every card's modes now, and by the aims.
fn goals(aims: &[Aim], look: &Look) -> Vec<CardGoal> {
    let goal = |card: &inventory::partitioning::Card| {
        let aim = aims.iter().find(|aim| aim.pci == card.pci);
        let now = card.compute.clone().ok()?;
        let memory = card.memory.clone().ok().map(|memory| (memory, memory));
        Some(CardGoal {
            pci: card.pci,
            compute: aim.map_or((now, now), |aim| aim.compute),
            memory: aim.map_or(memory, |aim| aim.memory),
            is_skipped: aim.is_none(),
        })
    };
    look.cards.iter().filter_map(goal).collect()
}

impl Progress {
    /// Goes on where a switch was killed or failed: cards that are left out get their modes of before, and units that it
    /// stopped start in the end.
    fn keep(&mut self, left: Self) {
        for card in self.cards.iter_mut().filter(|card| card.is_skipped) {
            if let Some(then) = left.cards.iter().find(|then| then.pci == card.pci && then.is_skipped) {
                card.compute.1 = then.compute.0;
            }
        }
        self.units = left.units;
        self.since = left.since;
    }

    /// The writes that are left.
    fn steps(&self, look: &Look) -> Steps {
        // Cards that the goal leaves out are to have their modes, too: a reload resets them.
        let aim = |card: &CardGoal| {
            let now = look.cards.iter().find(|now| now.pci == card.pci);
            let memory = now.and_then(|now| now.memory.clone().ok());
            let memory = card.memory.map(|(_, wanted)| (memory.unwrap_or(wanted), wanted));
            Aim { pci: card.pci, compute: card.compute, memory }
        };
        let aims: Vec<Aim> = self.cards.iter().map(aim).collect();
        Steps::of(&aims, &look.cards)
    }
}

struct Running<'a> {
    run: &'a Run<'a>,
    options: Options,
    progress: Progress,
    news: &'a mut dyn FnMut(News<'_>),
    wanted_units: &'a [String],
}

impl Running<'_> {
    fn through(&mut self, steps: &Steps) -> anyhow::Result<()> {
        self.enter(Phase::Pending)?;
        self.enter(Phase::Draining)?;
        self.stop_units()?;
        self.drain(steps)?;
        self.enter(Phase::Applying)?;
        let requests = steps.memory.iter().map(|switch| self.memory(switch)).collect::<Vec<_>>();
        self.write(&requests)?;
        if steps.needs_reload() {
            self.enter(Phase::Reloading)?;
            self.reload()?;
        }
        // The driver has picked compute modes by itself.
        let left = self.progress.steps(&Look::at(self.run.root));
        let writes = left.compute.iter().map(|switch| self.compute(switch)).collect::<Vec<_>>();
        self.write(&writes)?;
        self.enter(Phase::Verifying)?;
        self.verify()?;
        Ok(())
    }

    fn enter(&mut self, phase: Phase) -> anyhow::Result<()> {
        self.progress.phase = phase;
        self.progress.write(self.run.root)?;
        (self.news)(News::Phase(phase));
        Ok(())
    }

    fn programs(&self, what: &str) -> anyhow::Result<&Programs> {
        self.run.programs.ok_or_else(|| anyhow!("{what} on the running machine only"))
    }

    /// Stops the units that run. Each is on disk before it stops.
    fn stop_units(&mut self) -> anyhow::Result<()> {
        for unit in self.wanted_units.iter().filter(|_| self.options.stops_units) {
            let programs = self.programs("units are stopped")?.clone();
            if !runs(&programs, unit).map_err(|why| anyhow!(why))? {
                continue;
            }
            if !self.progress.units.contains(unit) {
                self.progress.units.push(unit.clone());
                self.progress.write(self.run.root)?;
            }
            programs.run(&["systemctl", "stop", unit], MODPROBE)?;
            (self.news)(News::Done(format!("{unit} was stopped")));
        }
        Ok(())
    }

    /// Starts the units that the switch has stopped, each whatever came of the others.
    fn start_units(&mut self) -> anyhow::Result<()> {
        // systemd starts a unit behind the one that runs this program at a boot.
        let wait: &[&str] = if self.options.stops_units { &[] } else { &["--no-block"] };
        let mut problems = Vec::new();
        for unit in std::mem::take(&mut self.progress.units) {
            let argv = [&["systemctl", "start"], wait, &[&unit]].concat();
            let started = self.programs("units are started").cloned();
            match started.and_then(|programs| Ok(programs.run(&argv, MODPROBE)?)) {
                Ok(_) => (self.news)(News::Done(format!("{unit} was started again"))),
                Err(error) => {
                    problems.push(format!("{unit} ran before, and does not start: {error:#}"));
                    self.progress.units.push(unit);
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("; ")) }
    }

    /// Waits until no process is on the cards that change; on any card before a reload.
    fn drain(&mut self, steps: &Steps) -> anyhow::Result<()> {
        let until = Instant::now() + self.options.wait;
        let left = self.wait_for(steps, until)?;
        if left.is_empty() {
            return Ok(());
        }
        if self.options.kill {
            for (signal, patience) in [(Signal::SIGTERM, GRACE), (Signal::SIGKILL, GRACE)] {
                for holder in self.holders(steps)? {
                    let pid = Pid::from_raw(i32::try_from(holder.pid).context("no pid")?);
                    // Without a name the pid is another namespace's.
                    if holder.name.is_some() && kill(pid, signal).is_ok() {
                        (self.news)(News::Done(format!("{holder} got {signal}")));
                    }
                }
                if self.wait_for(steps, Instant::now() + patience)?.is_empty() {
                    return Ok(());
                }
            }
        }
        let left: Vec<String> = self.holders(steps)?.iter().map(ToString::to_string).collect();
        let may_be_given = self.options.stops_units && !self.options.kill;
        let hint = if may_be_given { ": end them, wait longer with --wait, or give --kill" } else { "" };
        bail!(
            "after {} s these processes are still on the cards: {}{hint}",
            self.options.wait.as_secs(),
            left.join(", ")
        )
    }

    fn wait_for(&mut self, steps: &Steps, until: Instant) -> anyhow::Result<Vec<Holder>> {
        let mut last = Vec::new();
        loop {
            let now = self.holders(steps)?;
            if now != last {
                (self.news)(News::Waits(&now));
                last.clone_from(&now);
            }
            if now.is_empty() || Instant::now() >= until {
                return Ok(now);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn holders(&self, steps: &Steps) -> anyhow::Result<Vec<Holder>> {
        let inventory = amdgpu::read(self.run.root);
        let all = super::holders(self.run.root, &inventory).map_err(|problem| anyhow!(problem))?;
        Ok(in_the_way(all, steps))
    }

    fn memory(&self, switch: &Switch<Memory>) -> Action {
        value(
            switch.pci,
            amdgpu::MEMORY,
            Value { text: switch.to.to_string(), is_requested: true, meanings: MEMORY },
        )
    }

    fn compute(&self, switch: &Switch<Compute>) -> Action {
        value(
            switch.pci,
            amdgpu::COMPUTE,
            Value { text: switch.to.to_string(), is_requested: false, meanings: COMPUTE },
        )
    }

    fn write(&mut self, actions: &[Action]) -> anyhow::Result<()> {
        if actions.is_empty() {
            return Ok(());
        }
        let outcome = self.run.set_values(actions)?;
        for change in &outcome.changes {
            (self.news)(News::Done(format!("{}: {} in place of {}", change.path, change.to, change.from)));
        }
        match outcome.blocked.into_iter().chain(outcome.failed).next() {
            Some(finding) => Err(anyhow!("{}: {}", finding.path, finding.text)),
            None => Ok(()),
        }
    }

    fn reload(&mut self) -> anyhow::Result<()> {
        let programs = self.programs("the driver is loaded")?.clone();
        programs.run(&["modprobe", "--remove", "amdgpu"], MODPROBE).context(
            "the driver cannot be unloaded: a program has a GPU's node open, or a module needs it (lsmod)",
        )?;
        (self.news)(News::Done("amdgpu was unloaded".to_owned()));
        load(self.run, &self.progress.cards, self.news)
    }

    /// Reads each card's modes back.
    fn verify(&self) -> anyhow::Result<()> {
        let wrong = self.progress.wrong(&Look::at(self.run.root).cards);
        if wrong.is_empty() { Ok(()) } else { bail!("read back, the modes differ: {}", wrong.join("; ")) }
    }

    /// What is true of the cards now.
    fn truth(&self) -> String {
        let look = Look::at(self.run.root);
        let shown = |card: &inventory::partitioning::Card| {
            let compute = card.compute.as_ref().map_or_else(|_| "?".to_owned(), ToString::to_string);
            let memory = card.memory.as_ref().map_or_else(|_| "?".to_owned(), ToString::to_string);
            format!("{} {compute}/{memory}", card.pci)
        };
        let cards: Vec<String> = look.cards.iter().map(shown).collect();
        if cards.is_empty() {
            return "now amdgpu drives no card".to_owned();
        }
        let is_requested = |goal: &&CardGoal| {
            let card = look.cards.iter().find(|card| card.pci == goal.pci);
            let now = card.and_then(|card| card.memory.as_ref().ok());
            now.is_some_and(|now| goal.memory.is_some_and(|(_, wanted)| wanted != *now))
        };
        let requested = self.progress.cards.iter().find(is_requested).and_then(|goal| goal.memory);
        let requested = requested.map_or_else(String::new, |(_, wanted)| {
            format!("; {wanted} is requested, and comes when amdgpu is loaded again")
        });
        format!("now: {}{requested}", cards.join(", "))
    }
}

/// A card's file of a mode.
fn file_of(pci: PciAddress, file: &str) -> PathBuf {
    Path::new("/sys/bus/pci/devices").join(pci.to_string()).join(file)
}

fn value(pci: PciAddress, file: &str, value: Value) -> Action {
    let reason = "the modes of a partition profile";
    let action = Action::new(Stage::Shape, file_of(pci, file), Kind::Value(value), reason);
    Action { component: Component::Partitions.as_ref().to_owned(), ..action }
}
