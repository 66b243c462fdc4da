use super::outcome::notes_of;
use super::planned::{Planned, Saved, VERSION};
use super::scope::{APPLY, APPLY_EXPORTER, Request, STATUS, Scope, UNDO};
use super::{Error, Run, State, applied_elsewhere};
use reconcile::{Digest, Effect, Note, Plan, Receipt, Services};

impl Run<'_> {
    /// What would change now, without asking apt. `saved`: only if that is what this plan says. Writes nothing.
    pub fn plan(&self, saved: Option<&Saved>) -> Result<Planned, Error> {
        let state = State::read(self.root)?;
        let elsewhere = applied_elsewhere(self.root, self.config, &state.memory);
        let elsewhere = elsewhere.filter(|_| state.is_applied());
        let mut planned = self.planned_by(&APPLY, state)?;
        if let Some((last, now)) = elsewhere {
            let text =
                format!("the last apply was by {}, and this goes by {}", last.display(), now.display());
            planned.notes.push(Note { about: "configuration".to_owned(), text, problem: false });
        }
        saved.map_or(Ok(()), |saved| saved.expect(&planned))?;
        Ok(planned)
    }

    /// Plans an apply, with apt's own simulation where packages would come or go. `saved`: only if plan and simulation are
    /// what it says. `fetches`: whether apt may ask repositories that the plan adds. Writes nothing that stays.
    pub fn rehearse(&self, saved: Option<&Saved>, fetches: bool) -> Result<Planned, Error> {
        let mut planned = self.plan(saved)?;
        planned.rehearsal = self
            .package_manager()
            .and_then(|package_manager| planned.plan.rehearse(self.root, &package_manager, fetches));
        if !fetches {
            saved.map_or(Ok(()), |saved| saved.expect_of_apt(&planned))?;
        }
        Ok(planned)
    }

    /// What an apply of the exporter's unit alone would change. Writes nothing.
    pub fn plan_exporter(&self) -> Result<Planned, Error> {
        self.planned_by(&APPLY_EXPORTER, State::read(self.root)?)
    }

    /// How the machine differs from what an apply of this configuration would make, within the components of the last
    /// apply.
    pub(crate) fn planned(&self, state: State) -> Result<Planned, Error> {
        self.planned_by(&STATUS, state)
    }

    fn planned_by(&self, scope: &Scope, state: State) -> Result<Planned, Error> {
        let request = Request::Configuration { saved: None };
        let Ok(target) = self.target(scope, &request, state)? else { return Ok(Planned::default()) };
        let receipt = &target.state.receipt;
        let plan = self.plan_for(&target, &request, receipt, None);
        let mut notes = target.desired.notes.clone();
        notes.extend(notes_of(&plan));
        notes.extend(self.lost_runtimes(&target.desired, &plan, receipt));
        let is_undecided = target.desired.question.is_some();
        Ok(Planned { notes, is_undecided, ..self.announced(plan, receipt) })
    }

    /// What an undo would revert. Writes nothing.
    pub fn plan_undo(&self, force: bool) -> Result<Planned, Error> {
        let request = Request::Nothing { keeps: None, force };
        let state = State::of_receipt(self.root)?;
        let Ok(target) = self.target(&UNDO, &request, state)? else { return Ok(Planned::default()) };
        let receipt = &target.state.receipt;
        let plan = self.plan_for(&target, &request, receipt, None);
        let lost = self.lost_runtimes(&target.desired, &plan, receipt);
        let services = Services { restarts: self.restarts_of_undo(receipt), ..self.services() };
        let mut planned = self.announced_by(plan, receipt, &services);
        if !force {
            let Plan { left, blocked, hindered, .. } = &mut planned.plan;
            left.retain(|finding| !hindered.contains(finding));
            blocked.extend(hindered.iter().cloned());
        }
        planned.notes = notes_of(&planned.plan);
        planned.notes.extend(lost);
        Ok(planned)
    }

    /// A plan with the effects that it makes necessary, and the rules for units.
    pub(super) fn announced(&self, plan: Plan, receipt: &Receipt) -> Planned {
        self.announced_by(plan, receipt, &self.services())
    }

    fn announced_by(&self, plan: Plan, receipt: &Receipt, services: &Services<'_>) -> Planned {
        let mut effects: Vec<Effect> =
            plan.changes.iter().flat_map(|change| change.effects.clone()).collect();
        effects.extend(receipt.still_pending(self.root).map(|pending| pending.effect.clone()));
        effects.sort();
        effects.dedup();
        Planned {
            schema_version: VERSION,
            plan,
            announced: effects.iter().map(|effect| services.announce(effect)).collect(),
            effects,
            restart: Some(services.restarts),
            config_sha256: Digest::of(self.config.text().as_bytes()).as_str().to_owned(),
            notes: Vec::new(),
            rehearsal: None,
            is_undecided: false,
            skipped: self.programs.is_none().then_some("nothing is started beneath another root than /"),
        }
    }
}
