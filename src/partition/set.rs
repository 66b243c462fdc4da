//! A switch of cards: units stop, processes leave, modes are written, the driver is loaded again where a memory mode takes
//! that, and everything is read back. Each phase is on disk before it begins, and each can be done twice.

use std::time::Duration;

use anyhow::{anyhow, bail};
use config::Partitions;
use inventory::partitioning::{Aim, Card, Change, Compute, Memory, Steps, Switch};
use reconcile::{Action, Uptime};
use root::Root;

use super::context::{Context, News, Options};
use super::progress::{CardGoal, Goal, Phase, Progress};
use super::{Look, Plan, Refused, drain, driver, last_switch, modes, rivals, units};
use crate::run::{Run, State};

const LOCK: &str = "/var/lib/rocworker/partition.lock";

/// How long a switch waits for another one to end: no longer than for a look of the daemon's ([`is_at_work`]).
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether a switch is under way: what differs meanwhile is no news.
#[must_use]
pub fn is_at_work(root: &Root) -> bool {
    matches!(root.lock(LOCK, Duration::ZERO), Err(root::Error::Locked { .. }))
}

/// Keeps other switches away.
pub(super) fn lock(root: &Root) -> anyhow::Result<root::Lock> {
    root.lock(LOCK, PATIENCE).map_err(|error| match error {
        root::Error::Locked { .. } => anyhow!("another switch of cards is at work: {error}"),
        error => error.into(),
    })
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
    let _lock = lock(root)?;
    let last = last_switch(root).map_err(|problem| anyhow!(problem))?;
    let left = last.clone().filter(|last| last.phase != Phase::Succeeded);
    let mut context = Context { run, options, news };
    let (wanted_units, steps, progress) =
        match prepare(&mut context, partitions, goal, last.as_ref(), left.as_ref()) {
            Ok(prepared) => prepared,
            // A switch that was killed has stopped units, which only the end of another one starts.
            Err(error) => match left.map(|left| left.units).filter(|units| !units.is_empty()) {
                None => return Err(error),
                Some(units) => {
                    let units = units.join(" ");
                    bail!("{error:#}; the last switch has stopped units: systemctl start {units}")
                }
            },
        };
    if steps.is_empty() && left.is_none() {
        note_goal(root, progress, last.as_ref())?;
        return Ok(None);
    }
    let mut switch = Running { context, progress };
    let switched = if steps.is_empty() { switch.verify() } else { switch.through(&steps, &wanted_units) };
    let has_written = switch.progress.phase >= Phase::Applying || left.is_some();
    // A switch that failed may have changed some cards.
    let published = if has_written { publish() } else { Ok(()) };
    let switched = switched.and(published);
    let started = units::start(&mut switch.context, &mut switch.progress);
    let problem = match (switched, started) {
        (Ok(()), Ok(())) => {
            switch.enter(Phase::Succeeded)?;
            if let Some(memory) = switch.progress.requested {
                switch.context.done(format!(
                    "{memory} was requested before, and comes when amdgpu is loaded again, unless the machine is restarted \
                     before that"
                ));
            }
            return Ok(Some(switch.progress));
        }
        (Err(error), Ok(())) if !has_written => {
            // The cards are as they were, and so is what is known of the last switch.
            let kept = last.map_or_else(|| Ok(Progress::forget(root)?), |last| last.write(root));
            bail!(
                "nothing was changed: {error:#}{}",
                kept.err().map_or_else(String::new, |error| format!("; {error:#}"))
            );
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

/// The units that may stop, the writes and the record of a switch that nothing speaks against. `last`: the last switch of this boot; `left`: where it was
/// killed or failed.
fn prepare(
    context: &mut Context<'_>,
    partitions: &Partitions,
    goal: &Goal,
    last: Option<&Progress>,
    left: Option<&Progress>,
) -> anyhow::Result<(Vec<String>, Steps, Progress)> {
    let root = context.run.root;
    if let Some(rival) = rivals(root).first() {
        bail!("{rival}");
    }
    // What is not known of the receipt would stop the writes half-way.
    State::of_receipt(root)?;
    let mut look = Look::at(root);
    if let Some(left) = left.filter(|left| !driver::undriven(&look, &left.cards).is_empty()) {
        if !context.options.reload && !context.options.stops_units {
            let command = goal.command();
            bail!("amdgpu does not drive every card of the switch that was killed: `{command}` loads it");
        }
        driver::see_driven(context, &left.cards)?;
        look = Look::at(root);
    }
    let entries = match goal {
        Goal::Profile(name) => partitions.profiles.get(name).cloned(),
        Goal::Reset => last.map(|last| last.of_before(&look.cards)),
    };
    let entries = entries.ok_or_else(|| anyhow!("{goal} is nothing that can be set"))?;
    let plan = Plan::make(root, &look, partitions, &entries);
    let plan = plan.map_err(|Refused(why)| anyhow!("nothing was changed: {}", why.join("; ")))?;
    let (boot, now) = (Uptime::boot(root), context.run.now.to_string());
    let mut progress = Progress::begun(goal.clone(), boot, now, goals(&plan.aims, &look.cards));
    if let Some(last) = last {
        progress.before.clone_from(&last.before);
    }
    if let Some(left) = left {
        progress.keep(left.clone(), &look.cards);
    }
    let steps = progress.steps(&look.cards);
    let needs_reload = steps.needs_reload();
    // The driver takes no request back, so that set makes none unless it can load the driver afterwards.
    if needs_reload
        && context.options.reload
        && context.programs("the driver is loaded")?.find("modprobe").is_none()
    {
        bail!("nothing was changed: modprobe is not installed, which loads the driver again");
    }
    if needs_reload && !context.options.reload {
        let or = if *goal == Goal::Reset {
            ""
        } else {
            ", or for each start of the machine set partitions.reload: boot"
        };
        bail!(
            "nothing was changed: {goal} changes a memory mode, which takes effect when amdgpu is loaded again; that stops \
             every card of the driver: give --reload{or}"
        );
    }
    Ok((plan.units, steps, progress))
}

/// From now on the cards are to stay as a goal asks that they meet already.
fn note_goal(root: &Root, mut progress: Progress, last: Option<&Progress>) -> anyhow::Result<()> {
    if last.is_some_and(|last| last.goal != progress.goal) {
        progress.phase = Phase::Succeeded;
        progress.write(root)?;
    }
    Ok(())
}

/// Every card's modes now, and by the aims.
fn goals(aims: &[Aim], cards: &[Card]) -> Vec<CardGoal> {
    let stays = |card: &Card| {
        let (compute, memory) = (card.compute.clone().ok()?, card.memory.clone().ok());
        let memory = memory.map(|memory| Change { from: memory, to: memory });
        Some(Aim { pci: card.pci, compute: Change { from: compute, to: compute }, memory })
    };
    let goal = |card: &Card| {
        let aim = aims.iter().find(|aim| aim.pci == card.pci).copied();
        Some(CardGoal { aim: aim.or_else(|| stays(card))?, is_skipped: aim.is_none() })
    };
    cards.iter().filter_map(goal).collect()
}

struct Running<'a> {
    context: Context<'a>,
    progress: Progress,
}

impl Running<'_> {
    fn through(&mut self, steps: &Steps, wanted: &[String]) -> anyhow::Result<()> {
        self.enter(Phase::Pending)?;
        self.enter(Phase::Draining)?;
        units::stop(&mut self.context, &mut self.progress, wanted)?;
        drain::drain(&mut self.context, steps)?;
        self.enter(Phase::Applying)?;
        let request = |switch: &Switch<Memory>| {
            modes::memory(switch, self.progress.before(switch.pci).and_then(|it| it.memory))
        };
        let requests: Vec<Action> = steps.memory.iter().map(request).collect();
        let (has_changed, written) = self.write(&requests);
        // A write that failed may have been the second one.
        if has_changed {
            self.progress.requested = steps.memory.first().map(|switch| switch.to);
        }
        written?;
        if steps.needs_reload() {
            self.enter(Phase::Reloading)?;
            driver::reload(&mut self.context, &self.progress.cards)?;
            self.progress.requested = None;
        }
        // The driver has picked compute modes by itself.
        let left = self.progress.steps(&Look::at(self.context.run.root).cards);
        let write = |switch: &Switch<Compute>| {
            modes::compute(switch, self.progress.before(switch.pci).map(|it| it.compute))
        };
        let writes: Vec<Action> = left.compute.iter().map(write).collect();
        self.write(&writes).1?;
        self.enter(Phase::Verifying)?;
        self.verify()
    }

    fn enter(&mut self, phase: Phase) -> anyhow::Result<()> {
        self.progress.phase = phase;
        self.progress.write(self.context.run.root)?;
        (self.context.news)(News::Phase(phase));
        Ok(())
    }

    /// Whether a value was written, and whether all were.
    fn write(&mut self, actions: &[Action]) -> (bool, anyhow::Result<()>) {
        if actions.is_empty() {
            return (false, Ok(()));
        }
        let outcome = match self.context.run.set_values(actions) {
            Ok(outcome) => outcome,
            Err(error) => return (false, Err(error.into())),
        };
        for change in &outcome.changes {
            self.context.done(format!("{}: {} in place of {}", change.path, change.to, change.from));
        }
        let written = match outcome.blocked.into_iter().chain(outcome.failed).next() {
            Some(finding) => Err(anyhow!("{}: {}", finding.path, finding.text)),
            None => Ok(()),
        };
        (!outcome.changes.is_empty(), written)
    }

    /// Reads each card's modes back.
    fn verify(&self) -> anyhow::Result<()> {
        let wrong = self.progress.wrong(&Look::at(self.context.run.root).cards);
        if wrong.is_empty() {
            return Ok(());
        }
        bail!("read back, the modes differ: {}; journalctl -k may say why", wrong.join("; "))
    }

    /// What is true of the cards now.
    fn truth(&self) -> String {
        let cards = Look::at(self.context.run.root).cards;
        let shown = |card: &Card| {
            let compute = card.compute.as_ref().map_or_else(|_| "?".to_owned(), ToString::to_string);
            let memory = card.memory.as_ref().map_or_else(|_| "?".to_owned(), ToString::to_string);
            format!("{} {compute}/{memory}", card.pci)
        };
        let all: Vec<String> = cards.iter().map(shown).collect();
        if all.is_empty() {
            return "now amdgpu drives no card".to_owned();
        }
        let requested = self.progress.requested.map_or_else(String::new, |wanted| {
            format!("; {wanted} is requested, and comes when amdgpu is loaded again")
        });
        format!("now: {}{requested}", all.join(", "))
    }
}
