//! What the checks of every engine ask: whether its files are as they were meant, and whether a restart is owed.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use reconcile::command::Programs;
use reconcile::{Action, Desired, Effect, Plan, Receipt, Resource};
use root::Root;

use crate::check::{About, Check};
use crate::config::Config;
use crate::facts::Facts;
use crate::render::Templates;
use crate::timestamp::Timestamp;

/// The component of doctor that these checks belong to.
pub(crate) const CHECKS: &str = "engines";

/// How long an engine may take to tell its configuration.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

pub(super) const APPLY: &str = "rocworker apply";

/// What the checks of every engine stand on.
pub(crate) struct Examined<'a> {
    pub(crate) root: &'a Root,
    pub(crate) config: &'a Config,
    pub(crate) facts: &'a Facts,
    /// `None` beneath another Root than `/`, where no engine is asked.
    pub(crate) programs: Option<&'a Programs>,
    /// Where the wrapper's program is, as engines are told of it.
    pub(crate) wrapper: Result<PathBuf, String>,
    pub(crate) templates: Templates,
    pub(crate) receipt: Receipt,
}

impl Examined<'_> {
    /// Where the wrapper is that an engine should run; without one nothing of it can be as it was meant.
    pub(super) fn wrapper(&self, engine: &str) -> Result<&Path, Vec<Check>> {
        let failed = |why: &String| vec![About::one(CHECKS, engine).failed(why.clone(), APPLY)];
        self.wrapper.as_deref().map_err(failed)
    }

    /// Whether an engine's files are as they should be: what hinders, what differs, who fights for them.
    pub(super) fn files(&self, engine: &str, desired: &Desired) -> Vec<Check> {
        let about = || About::one(CHECKS, engine);
        let mut checks: Vec<Check> = desired
            .notes
            .iter()
            .filter(|note| note.problem)
            .map(|note| about().failed(note.text.clone(), format!("put that right, then {APPLY}")))
            .collect();
        let now = Timestamp::of(SystemTime::now()).seconds();
        let plan = Plan::make(self.root, desired, &self.receipt, None, false, now);
        // The receipt holds what is other components', too.
        let is_its = |path: &Resource| desired.actions.iter().any(|action| action.path == *path);
        for change in plan.changes.iter().filter(|change| is_its(&change.path)) {
            let evidence = format!("{} is not as it was meant", change.path.display());
            checks.push(about().failed(evidence, APPLY));
        }
        for finding in plan.contested.iter().chain(&plan.blocked).filter(|finding| is_its(&finding.path)) {
            checks.push(about().failed(finding.text.clone(), "rocworker status says more"));
        }
        checks
    }

    /// The same, each file that is as it was meant, and what is owed.
    pub(super) fn as_meant(&self, engine: &str, unit: &str, desired: &Desired) -> Vec<Check> {
        let mut checks = self.files(engine, desired);
        if checks.is_empty() {
            let meant = |action: &Action| format!("{} says what was meant", action.path.display());
            let about = || About::one(CHECKS, engine);
            checks.extend(desired.actions.iter().map(|action| about().ok(meant(action))));
        }
        checks.extend(self.owed(engine, unit));
        checks
    }

    /// A restart, reload or next start that is owed: what runs has read an older configuration.
    pub(super) fn owed(&self, engine: &str, unit: &str) -> Option<Check> {
        let is_its = |effect: &Effect| match effect {
            Effect::Restart { unit: of, .. }
            | Effect::Reload { unit: of }
            | Effect::NextStart { unit: of, .. } => of == unit,
            _ => false,
        };
        let owed = self.receipt.pending.iter().find(|pending| is_its(&pending.effect))?;
        let remedy = match owed.effect {
            Effect::Reload { .. } => format!("systemctl reload {unit}"),
            Effect::NextStart { .. } => {
                format!(
                    "systemctl restart {unit} when what runs there may end, or rocworker apply with restart: now"
                )
            }
            _ => format!("systemctl restart {unit}, or rocworker apply with restart: drain or now"),
        };
        let evidence = format!("{unit} still runs with its old configuration");
        Some(About::one(CHECKS, engine).warning(evidence, remedy))
    }
}
