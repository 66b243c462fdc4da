//! The one pipeline of every run: plan without the lock, lock, plan again, execute, effects, history.

use reconcile::history::Event;
use reconcile::{
    Digest, Effect, Executed, Note, Plan, Progress, Receipt, Restarts, Services, Stage, Transaction,
};

use super::driver::{is_read, is_reboot, of_driver};
use super::outcome::{Outcome, Selected, Stopped};
use super::scope::{Aim, Request, Scope};
use super::target::Target;
use super::{Error, Run, State};
use crate::memory::Memory;

impl Run<'_> {
    /// Runs as far as the scope goes. `on_progress` hears of each change before it is made, and of what takes long.
    pub(super) fn execute(
        &self,
        scope: &'static Scope,
        request: Request<'_>,
        on_progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Outcome, Error> {
        let mut outcome = Outcome::of(scope);
        let mut versions = None;
        // Without the lock first: where nothing is to be done nothing is written, not even the lock's file.
        if !matches!(request, Request::Nothing { .. }) {
            let target = match self.target(scope, &request, self.state(&request)?)? {
                Ok(target) => target,
                Err(stopped) => return Ok(Outcome { stopped: Some(stopped), ..outcome }),
            };
            let receipt = &target.state.receipt;
            let selected = self.select(scope, &request, &target, receipt, None)?;
            self.expect_saved(&request, &selected.plan, receipt)?;
            if self.is_in_sync(&request, &target, &selected) {
                outcome.add(selected, &[]);
                let receipt = receipt.clone();
                return Ok(self.ended(outcome, target, &receipt));
            }
            // A program that does not answer is not waited for twice.
            versions = Some(target.memory.versions);
        }
        let work = Transaction::begin(self.root, on_progress)?.by(self.hands().filter(|_| scope.packages));
        // Somebody may have had the lock until now: an apply, an undo.
        if let Request::Reconcile { is_current, .. } = request
            && !is_current()
        {
            return Ok(Outcome { stopped: Some(Stopped::Superseded), ..outcome });
        }
        let mut state = State { receipt: work.receipt().clone(), ..self.state(&request)? };
        state.memory.versions = versions.unwrap_or(state.memory.versions);
        let mut target = match self.target(scope, &request, state)? {
            Ok(target) => target,
            Err(stopped) => return Ok(Outcome { stopped: Some(stopped), ..outcome }),
        };
        if let Request::Configuration { saved: Some(_) } = request {
            let plan = self.plan_for(&target, &request, work.receipt(), None);
            self.expect_saved(&request, &plan, work.receipt())?;
        }
        let mut work = work.recorded(self.event(scope.command));
        self.adopt_reboot(&target.state.memory, &mut work)?;
        match request {
            Request::Configuration { .. } => {
                target.memory.write(self.root)?;
                work.restart_by(self.services().restarts);
            }
            Request::Reconcile { .. } => drop(target.memory.write(self.root)?),
            Request::Nothing { force, .. } => {
                let plan = self.plan_for(&target, &request, work.receipt(), None);
                let failed =
                    if force { Vec::new() } else { self.hindrances(scope, &plan, &work, &target.desired) };
                if !failed.is_empty() || (!scope.packages && !plan.left.is_empty()) {
                    return Ok(Outcome { failed, left: plan.left, ..outcome });
                }
                self.begin_undo(&mut target.memory);
            }
            Request::Boot { .. } | Request::One(_) => {}
        }
        let ran = self.stages(scope, &request, &mut target, &mut work, &mut outcome, on_progress);
        let unrecorded = work.record().err();
        ran.map_err(|error| error.after(work.made().len()))?;
        if let Request::Nothing { .. } = request {
            outcome.notes.extend(self.end_undo(target.memory.clone(), work.receipt()));
        }
        if let Some(error) = unrecorded {
            let text = format!("the changes are made, and the history lacks them: {error}");
            match request {
                Request::Configuration { .. } | Request::Nothing { .. } => {
                    outcome.notes.push(Note { about: "history".to_owned(), text, problem: true });
                }
                _ => tracing::warn!("{text}"),
            }
        }
        Ok(self.ended(outcome, target, work.receipt()))
    }

    /// The receipt and the memory. No damaged memory stops an undo, or a boot without a configuration.
    fn state(&self, request: &Request<'_>) -> Result<State, Error> {
        match request {
            Request::Nothing { .. } | Request::Boot { is_known: false, .. } => Ok(State {
                receipt: reconcile::Store::new(self.root).receipt()?,
                memory: Memory::read(self.root).unwrap_or_default(),
            }),
            _ => State::read(self.root),
        }
    }

    /// Whether nothing is to be done: neither on the machine nor in what is remembered.
    fn is_in_sync(&self, request: &Request<'_>, target: &Target, selected: &Selected) -> bool {
        let State { receipt, memory } = &target.state;
        let plan = &selected.plan;
        match request {
            Request::Configuration { .. } => {
                let knows_rule = receipt.is_empty() || receipt.restart == Some(self.services().restarts);
                let is_known = target.memory == *memory && knows_rule && !self.has_to_verify(&target.state);
                plan.is_empty() && !receipt.is_unfinished() && is_known
            }
            Request::Reconcile { rules, .. } => {
                let is_due = |effect| self.may_execute(rules, &[], selected.is_held, effect);
                let is_idle = plan.changes.is_empty()
                    && target.memory == *memory
                    && receipt.writing.is_none()
                    && !receipt.pending.iter().any(|pending| is_due(&pending.effect));
                !rules.enforce || is_idle
            }
            Request::Boot { .. } => plan.changes.is_empty(),
            Request::One(_) => plan.is_empty(),
            Request::Nothing { .. } => false,
        }
    }

    fn stages(
        &self,
        scope: &'static Scope,
        request: &Request<'_>,
        target: &mut Target,
        work: &mut Transaction<'_>,
        outcome: &mut Outcome,
        on_progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), Error> {
        for stage in scope.stages() {
            let selected = self.select(scope, request, target, work.receipt(), *stage)?;
            // Engines do not run yet, and a file system may come later: what nothing changes is not touched either.
            if scope.aim == Aim::Booted && selected.plan.changes.is_empty() {
                continue;
            }
            let is_driver_planned = of_driver(selected.plan.clone()).is_some();
            if is_apply(request) && *stage == Some(Stage::Shape) && self.may_bring_driver(&selected.plan) {
                self.mark_unverified(&mut target.memory)?;
            }
            let has_acted =
                self.stage((scope, request, *stage), target, selected, work, outcome, on_progress)?;
            if *stage != Some(Stage::Shape) {
                return Ok(());
            }
            if has_acted && !self.look_again(scope, request, target, work, outcome)? {
                return Ok(());
            }
            // A plan that somebody has looked at is held to: what it does not name takes another apply.
            let is_free = scope.packages && matches!(request, Request::Configuration { saved: None });
            if is_free && !is_driver_planned && outcome.effects.iter().any(is_read) {
                let plan = self.plan_for(target, request, work.receipt(), *stage);
                if let Some(plan) = of_driver(plan) {
                    self.mark_unverified(&mut target.memory)?;
                    self.make(plan.into(), work, outcome, on_progress)?;
                    self.look_again(scope, request, target, work, outcome)?;
                }
            }
            if is_apply(request) {
                self.verify_driver(target, work, outcome)?;
            }
        }
        Ok(())
    }

    /// What the first stage did may have changed what is true. False: nothing more is to be done.
    fn look_again(
        &self,
        scope: &Scope,
        request: &Request<'_>,
        target: &mut Target,
        work: &Transaction<'_>,
        outcome: &mut Outcome,
    ) -> Result<bool, Error> {
        let State { memory, .. } = &target.state;
        let known = target.memory.clone();
        let memory = Memory {
            chosen: known.chosen.clone(),
            versions: known.versions.clone(),
            config: known.config.clone(),
            ..memory.clone()
        };
        match self.target(scope, request, State { receipt: work.receipt().clone(), memory })? {
            Ok(now) => *target = Target { memory: known, ..now },
            Err(stopped) => {
                outcome.stopped = Some(stopped);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// One stage with its effects. Whether anything was done.
    fn stage(
        &self,
        (scope, request, stage): (&'static Scope, &Request<'_>, Option<Stage>),
        target: &Target,
        selected: Selected,
        work: &mut Transaction<'_>,
        outcome: &mut Outcome,
        on_progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<bool, Error> {
        let own: Vec<Effect> =
            selected.plan.changes.iter().flat_map(|change| change.effects.clone()).collect();
        let (before, is_held) = (work.owed(), selected.is_held);
        let may_forget = is_apply(request) && !target.memory.unverified;
        if stage != Some(Stage::Shape) {
            outcome.notes.extend(self.lost_runtimes(&target.desired, &selected.plan, work.receipt()));
        }
        let effects = outcome.effects.len();
        let has_changed = self.make(selected, work, outcome, on_progress)?;
        if let Request::Nothing { .. } = request {
            Self::forget_reboot(work)?;
        }
        let services = self.services_of(scope, request, &own, work.receipt());
        let allowed = |effect: &Effect| match request {
            Request::Reconcile { rules, .. } => self.may_execute(rules, &own, is_held, effect),
            _ => false,
        };
        // A restart that came and did not help is remembered until the driver runs.
        let owed: Vec<Effect> = work.receipt().owed(self.root).map(|it| it.effect.clone()).collect();
        let is_remembered = |effect: &Effect| is_reboot(effect) && !may_forget && !owed.contains(effect);
        let is_due = |effect: &Effect| {
            scope.executes(effect, stage, (&own, &before), allowed) && !is_remembered(effect)
        };
        outcome.effects.extend(work.run_effects(self.root, &services, is_due, on_progress)?);
        Ok(has_changed || outcome.effects.len() > effects)
    }

    /// Makes the selected changes; whether any was made.
    fn make(
        &self,
        mut selected: Selected,
        work: &mut Transaction<'_>,
        outcome: &mut Outcome,
        on_progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<bool, Error> {
        let Executed { done, failed, effects } =
            work.execute(&selected.plan, self.now.seconds(), on_progress)?;
        outcome.failed.extend(failed);
        outcome.effects.extend(effects);
        selected.forget_loss(&done);
        outcome.add(selected, &done);
        Ok(!done.is_empty())
    }

    /// The outcome with what is known in the end.
    fn ended(&self, mut outcome: Outcome, target: Target, receipt: &Receipt) -> Outcome {
        outcome.problem = target.unknown.and_then(|(_, problem)| problem);
        if outcome.scope.aim == Aim::Configured {
            outcome.notes.splice(0..0, target.desired.notes);
        }
        outcome.pending = receipt.owed(self.root).cloned().collect();
        outcome
    }

    pub(super) fn plan_for(
        &self,
        target: &Target,
        request: &Request<'_>,
        receipt: &Receipt,
        stage: Option<Stage>,
    ) -> Plan {
        let force = matches!(request, Request::Nothing { force: true, .. });
        let receipt = target.receipt(receipt, request);
        Plan::make(self.root, &target.desired, &receipt, stage, force, self.now.seconds())
    }

    fn expect_saved(&self, request: &Request<'_>, plan: &Plan, receipt: &Receipt) -> Result<(), Error> {
        if let Request::Configuration { saved: Some(saved) } = request {
            saved.expect(&self.announced(plan.clone(), receipt))?;
        }
        Ok(())
    }

    fn services_of(
        &self,
        scope: &Scope,
        request: &Request<'_>,
        own: &[Effect],
        receipt: &Receipt,
    ) -> Services<'_> {
        let services = self.services();
        match request {
            _ if !scope.restarts => Services { restarts: Restarts::Never, ..services },
            Request::Nothing { .. } => Services { restarts: self.restarts_of_undo(receipt), ..services },
            Request::Reconcile { rules, .. } => self.services_of_daemon(rules, own),
            _ => services,
        }
    }

    fn event(&self, command: &str) -> Event {
        Event {
            at: self.now.seconds(),
            command: command.to_owned(),
            caller: self.caller.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config_sha256: Digest::of(self.config.text().as_bytes()).as_str().to_owned(),
            changed: Vec::new(),
            killed: false,
        }
    }
}

fn is_apply(request: &Request<'_>) -> bool {
    matches!(request, Request::Configuration { .. })
}
