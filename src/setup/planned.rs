use reconcile::{
    Change, Digest, Effect, Finding, KindName, Note, Plan, Receipt, Rehearsal, Resource, Restarts, Stage,
    State, Store, Verb,
};
use serde::{Deserialize, Serialize};

use super::{Error, Moved, Setup};
use crate::memory::Memory;
use crate::premises::Premises;
use crate::worker::desired::desired;

/// The version of a plan in a file.
const VERSION: u32 = 1;

/// What would change. `plan --output json`, documented in docs/json.md.
#[derive(Debug, Default, Serialize)]
pub struct Planned {
    pub schema_version: u32,
    #[serde(flatten)]
    pub plan: Plan,
    /// What the changes make necessary, and what is owed of earlier ones.
    pub effects: Vec<Effect>,
    /// By which rule units are restarted.
    pub restart: Option<Restarts>,
    /// SHA-256 of the configuration.
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
    pub from: State,
    pub to: State,
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
    /// Reads a plan that `plan --out` wrote.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let saved: Self = serde_json::from_slice(text).map_err(|error| format!("is no plan: {error}"))?;
        if saved.schema_version == VERSION {
            Ok(saved)
        } else {
            let found = saved.schema_version;
            Err(format!("has schema_version {found}, which this version does not read: make the plan again"))
        }
    }

    /// Whether this is what a plan says now.
    pub(super) fn expect(&self, now: &Planned) -> Result<(), Moved> {
        let mut other = Vec::new();
        let paths = self.differences(&now.plan);
        if !paths.is_empty() {
            let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
            other.push(format!("other changes would be made now at {}", paths.join(", ")));
        }
        if self.restart != now.restart {
            other.push("units would be restarted by another rule (restart)".to_owned());
        }
        if self.effects != now.effects {
            let only = |these: &[Effect], those: &[Effect]| -> Vec<String> {
                these.iter().filter(|it| !those.contains(it)).map(ToString::to_string).collect()
            };
            let off = [only(&self.effects, &now.effects), only(&now.effects, &self.effects)].concat();
            other.push(format!("something else would be done at the end: {}", off.join(", ")));
        }
        if self.config_sha256 != now.config_sha256 {
            other.push("the configuration is another one".to_owned());
        }
        if other.is_empty() { Ok(()) } else { Err(Moved { other }) }
    }

    /// The paths of which this plan and the other say different things.
    fn differences(&self, plan: &Plan) -> Vec<Resource> {
        let now: Vec<_> = plan.changes.iter().map(SavedChange::of).collect();
        let only = |these: &[SavedChange], those: &[SavedChange]| -> Vec<Resource> {
            these.iter().filter(|it| !those.contains(it)).map(|it| it.path.clone()).collect()
        };
        let mut paths = [only(&self.changes, &now), only(&now, &self.changes)].concat();
        paths.sort();
        paths.dedup();
        paths
    }
}

/// What is not done beneath another Root than `/`, and whose file is parted from its other names, as notes of a plan
/// and of an apply.
pub(super) fn told_of(plan: &Plan) -> Vec<Note> {
    let note = |finding: &Finding| Note {
        about: finding.path.display().to_string(),
        text: finding.text.clone(),
        problem: false,
    };
    plan.skipped.iter().chain(&plan.linked).map(note).collect()
}

impl Setup<'_> {
    /// What would change now. `saved`: only if that is what this plan says. Writes nothing.
    ///
    /// # Errors
    /// When the configuration or what is ours cannot be read, or names what is not there; when the machine has moved.
    pub fn plan(&self, saved: Option<&Saved>) -> Result<Planned, Error> {
        let planned = self.plan_now()?;
        if let Some(saved) = saved {
            saved.expect(&planned)?;
        }
        Ok(planned)
    }

    /// The same, with apt's own simulation. Writes nothing that stays.
    ///
    /// # Errors
    /// As [`Setup::plan`].
    pub fn rehearse(&self, saved: Option<&Saved>) -> Result<Planned, Error> {
        let mut planned = self.plan(saved)?;
        planned.rehearsal = self.hands().and_then(|hands| planned.plan.rehearse(self.root, &hands));
        Ok(planned)
    }

    fn plan_now(&self) -> Result<Planned, Error> {
        let memory = Memory::read(self.root)?;
        let receipt = Store::new(self.root).receipt()?;
        let mut planned = self.planned(&memory, &self.premises(&memory, &receipt), &receipt)?;
        planned.notes.extend(self.of_last_apply(&receipt, &memory));
        Ok(planned)
    }

    pub(super) fn planned(
        &self,
        memory: &Memory,
        premises: &Premises,
        receipt: &Receipt,
    ) -> Result<Planned, Error> {
        let mut desired = desired(self.config, premises)?;
        let plan = Plan::make(self.root, &desired, receipt, None, false, self.now.seconds())?;
        desired.notes.extend(self.stale(memory, premises));
        desired.notes.extend(told_of(&plan));
        let lost = self.of_lost_runtimes(&desired, &plan, receipt);
        desired.notes.extend(lost);
        Ok(Planned { notes: desired.notes, ..self.announced(plan, receipt) })
    }

    /// A plan with what it makes necessary, and by which rules.
    pub(super) fn announced(&self, plan: Plan, receipt: &Receipt) -> Planned {
        let mut effects: Vec<Effect> =
            plan.changes.iter().flat_map(|change| change.effects.clone()).collect();
        effects.extend(receipt.owed(self.root).map(|pending| pending.effect.clone()));
        effects.sort();
        effects.dedup();
        let services = self.services();
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
