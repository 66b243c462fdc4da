//! The one pipeline of every run: plan without the lock, lock, plan again, execute, effects, history.

use reconcile::history::Event;
use reconcile::{Digest, Effect, Executed, Note, Plan, Progress, Receipt, Stage, Transaction};

use super::driver_part::{is_read, is_reboot, of_driver};
use super::outcome::{Outcome, Selected, Stopped};
use super::scope::{Aim, Request, Scope};
use super::target::Target;
use super::{Error, Run, State};
use crate::memory::Memory;

/// A run that has the lock.
pub(super) struct Execution<'r> {
    pub(super) run: &'r Run<'r>,
    scope: &'static Scope,
    request: Request<'r>,
    pub(super) target: Target,
    pub(super) transaction: Transaction<'r>,
    pub(super) outcome: Outcome,
    on_progress: &'r mut dyn FnMut(Progress<'_>),
}

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
            let state = self.state(&request)?;
            outcome.state = state.clone();
            let target = match self.decided_target(scope, &request, state)? {
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
        let transaction =
            Transaction::begin(self.root, on_progress)?.by(self.package_manager().filter(|_| scope.packages));
        // Another run may have had the lock until now: an apply, an undo.
        if let Request::Reconcile { is_current, .. } = request
            && !is_current()
        {
            return Ok(Outcome { stopped: Some(Stopped::Superseded), ..outcome });
        }
        let memory = self.state(&request)?.memory;
        let mut state = State::of(self.root, transaction.receipt().clone(), memory);
        state.memory.versions = versions.unwrap_or(state.memory.versions);
        outcome.state = state.clone();
        let mut target = match self.decided_target(scope, &request, state)? {
            Ok(target) => target,
            Err(stopped) => return Ok(Outcome { stopped: Some(stopped), ..outcome }),
        };
        if let Request::Configuration { saved: Some(_) } = request {
            let plan = self.plan_for(&target, &request, transaction.receipt(), None);
            self.expect_saved(&request, &plan, transaction.receipt())?;
        }
        let mut transaction = transaction.recorded(self.event(scope.command));
        self.adopt_reboot(&target.state.memory, &mut transaction)?;
        match request {
            Request::Configuration { .. } => {
                target.memory.write(self.root)?;
                transaction.restart_by(self.services().restarts);
            }
            Request::Reconcile { .. } => drop(target.memory.write(self.root)?),
            Request::Nothing { force, .. } => {
                let plan = self.plan_for(&target, &request, transaction.receipt(), None);
                let failed = if force {
                    Vec::new()
                } else {
                    self.hindrances(scope, &plan, &transaction, &target.desired)
                };
                if !failed.is_empty() || (!scope.packages && !plan.left.is_empty()) {
                    let left = plan.left.into_iter().filter(|left| !failed.contains(left)).collect();
                    return Ok(Outcome { failed, left, ..outcome });
                }
                self.begin_undo(scope, &mut target.memory);
            }
            Request::Boot { .. } | Request::Only(_) => {}
        }
        let mut execution =
            Execution { run: self, scope, request, target, transaction, outcome, on_progress };
        let ran = execution.stages();
        let Execution { mut target, mut transaction, mut outcome, .. } = execution;
        let unrecorded = transaction.record().err();
        ran.map_err(|error| error.after(transaction.made().len()))?;
        if let Request::Nothing { .. } = request {
            outcome.notes.extend(self.end_undo(scope, &mut target.memory, transaction.receipt()));
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
        Ok(self.ended(outcome, target, transaction.receipt()))
    }

    /// The receipt and the memory. No damaged memory stops an undo, or a boot without a configuration.
    fn state(&self, request: &Request<'_>) -> Result<State, Error> {
        let is_needless = matches!(request, Request::Nothing { .. } | Request::Boot { is_known: false, .. });
        if is_needless { State::of_receipt(self.root) } else { State::read(self.root) }
    }

    /// Whether nothing is to be done: neither on the machine nor in what is remembered.
    fn is_in_sync(&self, request: &Request<'_>, target: &Target, selected: &Selected) -> bool {
        let State { receipt, memory, .. } = &target.state;
        let plan = &selected.plan;
        match request {
            Request::Configuration { .. } => {
                let knows_rule = receipt.is_empty() || receipt.restart == Some(self.services().restarts);
                let is_known = target.memory == *memory && knows_rule && !self.has_to_verify(&target.state);
                plan.is_empty() && !receipt.is_unfinished() && is_known
            }
            Request::Reconcile { rules, .. } => {
                let is_due = |effect| self.may_execute(rules, &[], selected.tags, effect);
                let is_idle = plan.changes.is_empty()
                    && target.memory == *memory
                    && receipt.writing.is_none()
                    && !receipt.pending.iter().any(|pending| is_due(&pending.effect));
                !rules.enforce || is_idle
            }
            Request::Boot { .. } => plan.changes.is_empty(),
            Request::Only(_) => plan.is_empty(),
            Request::Nothing { .. } => false,
        }
    }

    /// Completes the outcome with what is known only in the end.
    fn ended(&self, mut outcome: Outcome, target: Target, receipt: &Receipt) -> Outcome {
        outcome.problem = target.unknown.and_then(|(_, problem)| problem);
        if outcome.scope.aim == Aim::Configured {
            outcome.accept_missing_optional(&target.desired);
            outcome.notes.splice(0..0, target.desired.notes);
        }
        outcome.state = State::of(self.root, receipt.clone(), target.memory);
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

impl Execution<'_> {
    fn stages(&mut self) -> Result<(), Error> {
        for stage in self.scope.stages() {
            let selected = self.select(*stage)?;
            // Engines do not run yet, and a file system may come later: what nothing changes is not touched either.
            if self.scope.aim == Aim::Booted && selected.plan.changes.is_empty() {
                continue;
            }
            let is_apply = self.is_apply();
            let is_driver_planned = of_driver(selected.plan.clone()).is_some();
            if is_apply && *stage == Some(Stage::Shape) && self.run.may_bring_driver(&selected.plan) {
                self.mark_unverified()?;
            }
            let has_acted = self.stage(*stage, selected)?;
            if *stage != Some(Stage::Shape) {
                return Ok(());
            }
            if has_acted && !self.look_again()? {
                return Ok(());
            }
            // A saved plan binds: what it does not name takes another apply.
            let is_free =
                self.scope.packages && matches!(self.request, Request::Configuration { saved: None });
            if is_free && !is_driver_planned && self.outcome.effects.iter().any(is_read) {
                let Selected { plan, .. } = self.select(*stage)?;
                if let Some(plan) = of_driver(plan) {
                    self.mark_unverified()?;
                    self.make(plan.into())?;
                    self.look_again()?;
                }
            }
            // What one component changes says nothing of the driver.
            if is_apply && self.scope.only(&self.target.state).is_none() {
                self.verify_driver()?;
            }
        }
        Ok(())
    }

    fn is_apply(&self) -> bool {
        matches!(self.request, Request::Configuration { .. })
    }

    fn select(&self, stage: Option<Stage>) -> Result<Selected, Error> {
        self.run.select(self.scope, &self.request, &self.target, self.transaction.receipt(), stage)
    }

    /// What the first stage did may have changed what is true. False: nothing more is to be done.
    fn look_again(&mut self) -> Result<bool, Error> {
        let known = self.target.memory.clone();
        let memory = Memory {
            pinned: known.pinned.clone(),
            versions: known.versions.clone(),
            config: known.config.clone(),
            ..self.target.state.memory.clone()
        };
        let state = State::of(self.run.root, self.transaction.receipt().clone(), memory);
        match self.run.decided_target(self.scope, &self.request, state)? {
            Ok(now) => self.target = Target { memory: known, ..now },
            Err(stopped) => self.outcome.stopped = Some(stopped),
        }
        Ok(self.outcome.stopped.is_none())
    }

    /// Makes the changes of a stage, then executes its effects. Returns whether anything was done.
    fn stage(&mut self, stage: Option<Stage>, selected: Selected) -> Result<bool, Error> {
        let own: Vec<Effect> =
            selected.plan.changes.iter().flat_map(|change| change.effects.clone()).collect();
        let (before, tags) = (self.transaction.pending(), selected.tags);
        let may_forget = self.is_apply() && !self.target.memory.unverified;
        if stage != Some(Stage::Shape) {
            let lost =
                self.run.lost_runtimes(&self.target.desired, &selected.plan, self.transaction.receipt());
            self.outcome.notes.extend(lost);
        }
        let effects = self.outcome.effects.len();
        let has_changed = self.make(selected)?;
        if let Request::Nothing { .. } = self.request {
            self.forget_reboot()?;
        }
        let (run, receipt) = (self.run, self.transaction.receipt());
        let services = run.services_of(self.scope, &self.request, &own, receipt);
        let allowed = |effect: &Effect| match self.request {
            Request::Reconcile { rules, .. } => run.may_execute(rules, &own, tags, effect),
            _ => false,
        };
        // A restart that came and did not help is remembered until the driver runs.
        let still_pending: Vec<Effect> =
            receipt.still_pending(run.root).map(|it| it.effect.clone()).collect();
        let is_remembered =
            |effect: &Effect| is_reboot(effect) && !may_forget && !still_pending.contains(effect);
        let is_due = |effect: &Effect| {
            self.scope.executes(effect, stage, (&own, &before), allowed) && !is_remembered(effect)
        };
        let settled = self.transaction.run_effects(run.root, &services, is_due, self.on_progress)?;
        self.outcome.effects.extend(settled);
        Ok(has_changed || self.outcome.effects.len() > effects)
    }

    /// Makes the selected changes; whether any was made.
    fn make(&mut self, mut selected: Selected) -> Result<bool, Error> {
        let now = self.run.now.seconds();
        let Executed { done, failed, effects } =
            self.transaction.execute(&selected.plan, now, self.on_progress)?;
        self.outcome.failed.extend(failed);
        self.outcome.effects.extend(effects);
        selected.forget_loss(&done);
        self.outcome.add(selected, &done);
        Ok(!done.is_empty())
    }
}
