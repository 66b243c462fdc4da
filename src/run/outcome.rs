//! What came of a run.

use std::collections::BTreeSet;

use reconcile::{Change, Desired, Effect, Finding, Note, Outcome as EffectOutcome, Plan, Resource, Settled};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde::{Deserialize, Serialize as SerializeDerive};

use super::State;
use super::scope::{APPLY, Aim, Scope};
use crate::desired;
use crate::pending_gpus::PendingGpu;

/// What a run has done, and what it leaves. As JSON it is the command's answer, which docs/json.md documents.
#[derive(Debug, Default)]
pub struct Outcome {
    pub(super) scope: &'static Scope,
    pub stopped: Option<Stopped>,
    /// Why the desired state is unknown: what was published and is still true stays.
    pub problem: Option<desired::Error>,
    pub changes: Vec<Change>,
    pub failed: Vec<Finding>,
    pub effects: Vec<Settled>,
    pub contested: Vec<Finding>,
    pub blocked: Vec<Finding>,
    /// What the run did not revert, and why.
    pub left: Vec<Finding>,
    /// What differs from the desired state, and may not be changed by this run.
    pub differs: Vec<Differs>,
    /// GPUs that have not come: engines start without them.
    pub missing: Vec<PendingGpu>,
    pub tags: TagLoss,
    /// The state that the run has left.
    pub state: State,
    /// The optional packages that the run could not install, and why.
    pub missing_optional: Option<String>,
    pub notes: Vec<Note>,
}

/// Why a run ended before it looked at everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// No apply has set this machine up, or an undo came since.
    NotSetUp,
    /// The configuration was never followed on this machine, and cannot be: it names a GPU that is not there.
    Unfit(String),
    /// The last apply went by another configuration or version.
    Other(String),
    /// Another configuration is there by now, or another build of this program.
    Superseded,
}

/// Something that differs from the desired state.
#[derive(Debug, Clone, PartialEq, Eq, SerializeDerive, Deserialize)]
pub struct Differs {
    pub path: Resource,
    pub why: Why,
}

/// Why a run does not change what differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, SerializeDerive, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The daemon only reports (`daemon.enforce: false`).
    Reported,
    /// Only an apply changes it: packages and the like, engines while no GPU is there, the daemon's own unit.
    Apply,
    /// Tags are kept for a while, because their GPUs have just gone.
    Settling,
}

/// Whether a worker would have fewer tags, because their GPUs are gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TagLoss {
    #[default]
    NoLoss,
    /// Nothing keeps them: they wait for what the daemon may not do, or could not.
    Due,
    /// They are kept for a while.
    Held,
}

/// A plan as far as a run executes it, and what it leaves of it.
#[derive(Debug, Default)]
pub(super) struct Selected {
    pub(super) plan: Plan,
    pub(super) differs: Vec<Differs>,
    pub(super) tags: TagLoss,
}

impl From<Plan> for Selected {
    fn from(plan: Plan) -> Self {
        Self { plan, ..Self::default() }
    }
}

impl Default for &'static Scope {
    fn default() -> Self {
        &APPLY
    }
}

impl Outcome {
    pub(super) fn of(scope: &'static Scope) -> Self {
        Self { scope, ..Self::default() }
    }

    /// Adds a plan that was executed as far as `done`.
    pub(super) fn add(&mut self, selected: Selected, done: &[Resource]) {
        let Selected { plan, differs, tags } = selected;
        match self.scope.aim {
            Aim::Configured => self.notes.extend(notes_of(&plan)),
            Aim::Reverted => self.notes.extend(plan.linked.iter().map(note)),
            Aim::Booted => {}
        }
        self.contested.extend(plan.contested);
        self.blocked.extend(plan.blocked);
        self.left.extend(plan.left);
        self.differs.extend(differs);
        self.tags = self.tags.max(tags);
        self.changes.extend(plan.changes.into_iter().filter(|change| done.contains(&change.path)));
    }

    /// Turns the failures of optional actions into a note.
    pub(super) fn accept_missing_optional(&mut self, desired: &Desired) {
        let optional: BTreeSet<&Resource> =
            desired.actions.iter().filter(|action| action.is_optional).map(|action| &action.path).collect();
        let is_optional = |finding: &mut Finding| optional.contains(&finding.path);
        let findings: Vec<Finding> = (self.failed.extract_if(.., is_optional))
            .chain(self.blocked.extract_if(.., is_optional))
            .collect();
        let is_its = |settled: &mut Settled| match &settled.effect {
            Effect::AptUpdate { source, .. } => {
                settled.outcome == EffectOutcome::Failed && optional.contains(&Resource::from(source.clone()))
            }
            _ => false,
        };
        let effects: Vec<Settled> = self.effects.extract_if(.., is_its).collect();
        let (packages, files): (Vec<_>, Vec<_>) =
            findings.into_iter().partition(|finding| finding.path.is_package());
        // A package that waits for its repository says less than the repository.
        let cause = files.iter().map(|it| it.text.as_str()).chain(effects.iter().map(|it| it.text.as_str()));
        let first = || packages.iter().map(|it| it.text.as_str());
        let Some(cause) = cause.chain(first()).next().map(str::to_owned) else { return };
        let name = |it: &Finding| match &it.path {
            Resource::Package(name) => name.clone(),
            other => other.to_string(),
        };
        let what = if packages.is_empty() { &files } else { &packages };
        let names: Vec<String> = what.iter().map(name).collect();
        let text = format!("{}: {cause}", names.join(", "));
        let note = format!(
            "not installed, and containers get their GPUs without it: {text}; rocworker apply tries again"
        );
        self.notes.push(Note { about: "packages".to_owned(), text: note, problem: false });
        // Beneath another Root apt is not asked, which the plan says.
        self.missing_optional = (!packages.is_empty()).then_some(text);
    }

    /// Whether something failed that may succeed when it is tried again.
    pub fn has_failed(&self) -> bool {
        self.problem.is_some()
            || !self.failed.is_empty()
            || self.effects.iter().any(|effect| effect.outcome == EffectOutcome::Failed)
    }

    /// Whether the machine is not in sync with what was asked for. An undo falls short while anything stays managed or
    /// pending.
    pub fn falls_short(&self) -> bool {
        let is_reverted = self.scope.aim == Aim::Reverted;
        let is_pending = || self.effects.iter().any(|effect| effect.outcome == EffectOutcome::Pending);
        self.has_failed()
            || !self.blocked.is_empty()
            || !self.missing.is_empty()
            || self.notes.iter().any(|note| note.problem)
            || is_reverted && (!self.left.is_empty() || is_pending())
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let aim = self.scope.aim;
        let mut answer = serializer.serialize_map(None)?;
        answer.serialize_entry("schema_version", &1)?;
        if aim == Aim::Booted {
            answer.serialize_entry("set_up", &self.state.is_applied())?;
        }
        answer.serialize_entry("changes", &self.changes)?;
        answer.serialize_entry("failed", &self.failed)?;
        answer.serialize_entry("effects", &self.effects)?;
        match aim {
            Aim::Booted => {
                let differs: Vec<_> = self.differs.iter().map(|it| &it.path).collect();
                answer.serialize_entry("missing", &self.missing)?;
                answer.serialize_entry("differs", &differs)?;
                return answer.end();
            }
            Aim::Configured => {
                answer.serialize_entry("contested", &self.contested)?;
                answer.serialize_entry("blocked", &self.blocked)?;
            }
            Aim::Reverted => {}
        }
        answer.serialize_entry("left", &self.left)?;
        answer.serialize_entry("notes", &self.notes)?;
        answer.end()
    }
}

/// What a plan skips beneath another Root than `/`, and which files lose their other names.
pub(super) fn notes_of(plan: &Plan) -> Vec<Note> {
    plan.skipped.iter().chain(&plan.linked).map(note).collect()
}

fn note(finding: &Finding) -> Note {
    Note { about: finding.path.display().to_string(), text: finding.text.clone(), problem: false }
}
