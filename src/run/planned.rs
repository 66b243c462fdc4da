//! A plan as `plan --output json` prints it, and as `apply FILE` reads it again.

use reconcile::{Change, Effect, KindName, Note, Plan, Rehearsal, Resource, Restarts, Stage, Verb};
use serde::{Deserialize, Serialize};

use super::Error;

pub(super) const VERSION: u32 = 1;

/// What would change. `plan --output json`, documented in docs/json.md.
#[derive(Debug, Default, Serialize)]
pub struct Planned {
    pub schema_version: u32,
    #[serde(flatten)]
    pub plan: Plan,
    /// What the changes make necessary, and what is pending of earlier ones.
    pub effects: Vec<Effect>,
    /// The rule by which units are restarted.
    pub restart: Option<Restarts>,
    pub config_sha256: String,
    pub notes: Vec<Note>,
    /// Why a run would execute no effects here. `None`: it would.
    pub skipped: Option<&'static str>,
    /// What apt says that it would do; only where packages would come or go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<Rehearsal>,
    /// Whether an apply waits for a person's decision, which the first note asks for.
    #[serde(skip)]
    pub is_undecided: bool,
    /// The effects in sentences for a person, which depend on what may be restarted here.
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
    #[serde(default)]
    pub rehearsal: Option<Rehearsal>,
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

    /// Whether apt would do now what it said for the plan.
    pub(super) fn expect_of_apt(&self, now: &Planned) -> Result<(), Error> {
        let [saved, now] = [&self.rehearsal, &now.rehearsal].map(|it| it.as_ref().map(|it| &it.lines));
        if saved.is_none() || saved == now {
            return Ok(());
        }
        Err(Error::Stale(vec!["apt would do something else than the plan says".to_owned()]))
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
            match (saved.from.to_string(), now.from.to_string()) {
                (was, is) if was == is => format!("{path} has another content than when the plan was saved"),
                (was, is) => format!("{path} was {was}, and is {is} now"),
            }
        }
        (Some(_), Some(_)) => format!("{path} would become another one than in the plan"),
        (Some(_), None) => format!("{path} needs no change now"),
        (None, Some(now)) => format!("{path} is {} and needs a change that the plan lacks", now.from),
        (None, None) => format!("{path} has changed"),
    }
}

/// The elements that only one of the two slices has.
fn differing<'a, T: PartialEq>(one: &'a [T], other: &'a [T]) -> impl Iterator<Item = &'a T> {
    let only_one = one.iter().filter(|it| !other.contains(it));
    only_one.chain(other.iter().filter(|it| !one.contains(it)))
}
