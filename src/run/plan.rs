use reconcile::{
    Change, Digest, Effect, KindName, Note, Plan, Receipt, Rehearsal, Resource, Restarts, Services, Stage,
    Verb,
};
use serde::{Deserialize, Serialize};

use super::outcome::notes_of;
use super::scope::{APPLY, APPLY_EXPORTER, Request, STATUS, Scope, UNDO};
use super::{Error, Run, State, applied_elsewhere};

const VERSION: u32 = 1;

/// What would change. `plan --output json`, documented in docs/json.md.
#[derive(Debug, Default, Serialize)]
pub struct Planned {
    pub schema_version: u32,
    #[serde(flatten)]
    pub plan: Plan,
    /// What the changes make necessary, and what is pending of earlier ones.
    pub effects: Vec<Effect>,
    /// By which rule units are restarted.
    pub restart: Option<Restarts>,
    pub config_sha256: String,
    pub notes: Vec<Note>,
    /// Why effects come to nothing here, when they do.
    pub skipped: Option<&'static str>,
    /// What apt says that it would do; only where `apply --dry-run` asks for it and packages would come or go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<Rehearsal>,
    /// The effects as a person reads them, by what may be restarted here.
    #[serde(skip)]
    pub announced: Vec<String>,
}

/// A plan that was kept in a file, as far as it is compared.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Saved {
    pub schema_version: u32,
    pub changes: Vec<SavedChange>,
    pub effects: Vec<Effect>,
    pub restart: Option<Restarts>,
    pub config_sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SavedChange {
    pub kind: KindName,
    pub path: Resource,
    pub change: Verb,
    pub stage: Stage,
    pub from: reconcile::State,
    pub to: reconcile::State,
}

impl SavedChange {
    fn of(change: &Change) -> Self {
        Self {
            kind: change.kind,
            path: change.path.clone(),
            change: change.change,
            stage: change.stage,
            from: change.from.clone(),
            to: change.to.clone(),
        }
    }
}

impl Saved {
    /// Reads a plan that `plan --save` wrote.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let saved: Self = serde_json::from_slice(text).map_err(|error| format!("is no plan: {error}"))?;
        if saved.schema_version == VERSION {
            Ok(saved)
        } else {
            let found = saved.schema_version;
            Err(format!("has schema_version {found}, which this version does not read: make the plan again"))
        }
    }

    /// Whether this is what a plan says now; else what has changed since.
    pub(super) fn expect(&self, now: &Planned) -> Result<(), Error> {
        let mut other = Vec::new();
        let changes: Vec<_> = now.plan.changes.iter().map(SavedChange::of).collect();
        let mut paths: Vec<_> = differing(&self.changes, &changes).map(|it| &it.path).collect();
        paths.sort();
        paths.dedup();
        let at =
            |changes: &[SavedChange], path: &Resource| changes.iter().find(|it| it.path == *path).cloned();
        other.extend(paths.into_iter().map(|path| moved(path, at(&self.changes, path), at(&changes, path))));
        if self.restart != now.restart {
            other.push("the configuration has another rule for restarts (`restart`)".to_owned());
        }
        if self.effects != now.effects {
            let only = |these: &[Effect], those: &[Effect]| {
                let only: Vec<_> =
                    these.iter().filter(|it| !those.contains(it)).map(ToString::to_string).collect();
                only.join(", ")
            };
            let (gone, new) = (only(&self.effects, &now.effects), only(&now.effects, &self.effects));
            other.extend((!new.is_empty()).then(|| format!("now also due afterwards: {new}")));
            other.extend((!gone.is_empty()).then(|| format!("no longer due afterwards: {gone}")));
        }
        if self.config_sha256 != now.config_sha256 {
            other.push("the configuration has changed".to_owned());
        }
        if other.is_empty() { Ok(()) } else { Err(Error::Stale(other)) }
    }
}

/// What has changed at a path since a plan was saved.
fn moved(path: &Resource, saved: Option<SavedChange>, now: Option<SavedChange>) -> String {
    match (saved, now) {
        (Some(saved), Some(now)) if saved.from != now.from => {
            format!("{path} was {}, and is {} now", saved.from, now.from)
        }
        (Some(_), Some(_)) => format!("{path} would become another one than in the plan"),
        (Some(_), None) => format!("{path} needs no change now"),
        (None, Some(now)) => format!("{path} is {} and needs a change that the plan lacks", now.from),
        (None, None) => format!("{path} has changed"),
    }
}

/// What only one of the two has.
fn differing<'a, T: PartialEq>(one: &'a [T], other: &'a [T]) -> impl Iterator<Item = &'a T> {
    let only_one = one.iter().filter(|it| !other.contains(it));
    only_one.chain(other.iter().filter(|it| !one.contains(it)))
}

impl Run<'_> {
    /// What would change now. `saved`: only if that is what this plan says. Writes nothing.
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

    /// Plans an apply, with apt's own simulation. Writes nothing that stays.
    pub fn rehearse(&self, saved: Option<&Saved>) -> Result<Planned, Error> {
        let mut planned = self.plan(saved)?;
        planned.rehearsal = self.hands().and_then(|hands| planned.plan.rehearse(self.root, &hands));
        Ok(planned)
    }

    /// What an apply of the exporter's unit alone would change. Writes nothing.
    pub fn plan_exporter(&self) -> Result<Planned, Error> {
        self.planned_by(&APPLY_EXPORTER, State::read(self.root)?)
    }

    /// How the machine differs from what was applied, and the configuration's say in that.
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
        Ok(Planned { notes, ..self.announced(plan, receipt) })
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

    /// A plan with what it makes necessary, and by which rules.
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
            skipped: self.programs.is_none().then_some("nothing is started beneath another root than /"),
        }
    }
}
