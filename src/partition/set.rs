//! A switch of cards: units stop, processes leave, modes are written, the driver is loaded again where a memory mode takes
//! that, and everything is read back. Each phase is on disk before it begins, and each can be done twice.

use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use inventory::PciAddress;
use inventory::partitioning::{Aim, Compute, Entry, Memory, Steps, Switch};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reconcile::command::Programs;
use reconcile::{Action, Kind, Stage, Uptime, Value};

use super::before::file_of;
use super::holders::in_the_way;
use super::progress::{CardGoal, Goal, Phase, Progress};
use super::{Holder, Look, Plan, Refused, last_switch, rivals};
use crate::run::Run;
use config::{Component, Partitions};

const LOCK: &str = "/var/lib/rocworker/partition.lock";

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

/// The result of a switch that did not fail.
#[derive(Debug)]
pub enum Switched {
    /// Each card was as the goal asks.
    Nothing,
    Done(Progress),
}

/// Switches cards to a goal. `entries`: those of the goal's profile.
///
/// # Errors
/// Nothing was changed, or a phase failed: the sentence says what is true now.
pub fn set(
    run: &Run<'_>,
    partitions: &Partitions,
    goal: &Goal,
    entries: &[Entry],
    options: Options,
    news: &mut dyn FnMut(News<'_>),
) -> anyhow::Result<Switched> {
    let lock = run.root.lock(LOCK, Duration::ZERO);
    let _lock = lock.context("another switch of cards may be at work")?;
    let boot = Uptime::boot(run.root);
    let killed = last_switch(run.root).map_err(|problem| anyhow!(problem))?.filter(Progress::is_unfinished);
    if let Some(other) = killed.as_ref().filter(|killed| killed.goal != *goal && *goal != Goal::Reset) {
        bail!(
            "a switch to {0} was killed while it was {1:?}: finish it with `rocworker partition set {0}`, or restore the \
             modes with `rocworker partition reset`",
            other.goal,
            other.phase
        );
    }
    if let Some(rival) = rivals(run.root).first() {
        bail!("{rival}");
    }
    let look = Look::at(run.root);
    let plan = Plan::make(&look, partitions, &goal.to_string(), entries);
    let plan = plan.map_err(|Refused(why)| anyhow!("nothing was changed: {}", why.join("; ")))?;
    let mut progress = Progress::begun(goal.clone(), boot, run.now.to_string(), goals(&plan.aims, &look));
    if let Some(killed) = killed {
        // Cards that are left out are to have the modes of before the killed switch.
        progress.keep(killed);
    }
    let steps = progress.steps(&look);
    if steps.is_empty() && progress.units.is_empty() {
        return Ok(Switched::Nothing);
    }
    if steps.needs_reload() && !options.reload {
        bail!(
            "nothing was changed: {} takes another memory mode, which takes effect when amdgpu is loaded again; that stops \
             every card of the driver: give --reload, or for each start of the machine set partitions.reload: boot",
            goal
        );
    }
    let mut switch = Running { run, options, progress, news, wanted_units: &plan.units };
    match switch.through(&steps) {
        Ok(()) => {
            switch.start_units()?;
            switch.enter(Phase::Succeeded)?;
            Ok(Switched::Done(switch.progress))
        }
        Err(error) => {
            let started = switch.start_units();
            let problem = format!("{error:#}; {}", switch.truth());
            switch.progress.problem = Some(problem.clone());
            switch.enter(Phase::Failed)?;
            started?;
            Err(anyhow!(problem))
        }
    }
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
    /// Goes on where a killed switch stopped: cards that are left out have their modes of before, and units that it
    /// stopped are started in the end.
    fn keep(&mut self, killed: Self) {
        for card in self.cards.iter_mut().filter(|card| card.is_skipped) {
            if let Some(then) = killed.cards.iter().find(|then| then.pci == card.pci) {
                let wanted = if then.is_skipped { then.compute.0 } else { card.compute.1 };
                card.compute.1 = wanted;
            }
        }
        self.units = killed.units;
        self.since = killed.since;
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
        for unit in self.wanted_units {
            let programs = self.programs("units are stopped")?.clone();
            if !is_active(&programs, unit)? {
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

    fn start_units(&mut self) -> anyhow::Result<()> {
        for unit in std::mem::take(&mut self.progress.units) {
            let started = self.programs("units are started").cloned();
            let started = started.and_then(|it| Ok(it.run(&["systemctl", "start", &unit], MODPROBE)?));
            if let Err(error) = started {
                self.progress.units.push(unit.clone());
                return Err(error.context(format!("{unit} ran before, and does not start")));
            }
            (self.news)(News::Done(format!("{unit} was started again")));
        }
        Ok(())
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
        let hint = if self.options.kill { "" } else { ": end them, wait longer with --wait, or give --kill" };
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

    /// Unloads the driver and loads it, and waits until each card is there again.
    fn reload(&mut self) -> anyhow::Result<()> {
        let programs = self.programs("the driver is loaded")?.clone();
        let cards: Vec<PciAddress> = self.progress.cards.iter().map(|card| card.pci).collect();
        programs.run(&["modprobe", "--remove", "amdgpu"], MODPROBE).context(
            "the driver cannot be unloaded: a program has a GPU's node open, or a module needs it (lsmod); the requested \
             memory mode takes effect whenever it is loaded again",
        )?;
        (self.news)(News::Done("amdgpu was unloaded".to_owned()));
        programs.run(&["modprobe", "amdgpu"], MODPROBE).context(
            "the driver is unloaded and cannot be loaded: journalctl -k says why; no card works until it is",
        )?;
        let until = Instant::now() + COMING;
        loop {
            let look = Look::at(self.run.root);
            let there =
                |pci: &&PciAddress| look.cards.iter().any(|card| card.pci == **pci && card.compute.is_ok());
            let missing: Vec<String> =
                cards.iter().filter(|pci| !there(pci)).map(ToString::to_string).collect();
            if missing.is_empty() {
                (self.news)(News::Done("amdgpu was loaded".to_owned()));
                return Ok(());
            }
            if Instant::now() >= until {
                bail!(
                    "the driver was loaded, and after {} s it does not drive {}: journalctl -k says why",
                    COMING.as_secs(),
                    missing.join(", ")
                );
            }
            std::thread::sleep(PAUSE);
        }
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
            "now amdgpu drives no card".to_owned()
        } else {
            format!("now: {}", cards.join(", "))
        }
    }
}

fn value(pci: PciAddress, file: &str, value: Value) -> Action {
    let reason = "the modes of a partition profile";
    let action = Action::new(Stage::Shape, file_of(pci, file), Kind::Value(value), reason);
    Action { component: Component::Partitions.as_ref().to_owned(), ..action }
}

/// Whether systemd runs the unit.
fn is_active(programs: &Programs, unit: &str) -> anyhow::Result<bool> {
    let output = programs.run(&["systemctl", "show", "--property=ActiveState", unit], MODPROBE)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(matches!(text.trim(), "ActiveState=active" | "ActiveState=activating" | "ActiveState=reloading"))
}
