//! Whether each engine that is configured here is in effect configured as it was meant: what it says of itself, not
//! what stands in a file of ours.

mod concourse;
mod containerd;
mod docker;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use reconcile::command::Programs;
use reconcile::{Desired, Effect, Plan, Receipt, Resource, Store};
use root::Root;

use super::check::{About, Check};
use crate::config::{Config, Configure};
use crate::engines::Versions;
use crate::facts::Facts;
use crate::memory::Memory;
use crate::moment::Moment;
use crate::program::{self, Program};
use crate::render::Templates;

pub(super) const NAME: &str = "engines";

/// How long an engine may take to tell its configuration.
const PATIENCE: Duration = Duration::from_secs(10);

const APPLY: &str = "rocworker apply";

/// What the checks of every engine stand on.
struct Ground<'a> {
    root: &'a Root,
    config: &'a Config,
    facts: &'a Facts,
    /// `None` beneath another Root than `/`.
    programs: Option<&'a Programs>,
    /// Where the wrapper's program is, as engines are told of it.
    wrapper: Result<PathBuf, String>,
    templates: Templates,
    receipt: Receipt,
}

/// `programs`: `None` beneath another Root than `/`, where no engine is asked.
pub(super) fn check(root: &Root, config: &Config, facts: &Facts, programs: Option<&Programs>) -> Vec<Check> {
    if facts.amd().next().is_none() {
        return vec![About::all(NAME).skipped("there is no AMD GPU that engines could be told of")];
    }
    let receipt = match Store::new(root).receipt() {
        Ok(receipt) => receipt,
        Err(error) => return vec![About::all(NAME).failed(error.to_string(), "put that right first")],
    };
    let known = Memory::read(root).map(|memory| memory.versions).unwrap_or_default();
    let mut versions = Versions::new(root, programs, known);
    let wrapper = Program::find(root, None)
        .and_then(|program| program::runs(&mut versions, &program.path).map(|()| program.path));
    let ground = Ground { root, config, facts, programs, wrapper, templates: Templates::read(root), receipt };
    [
        containerd::check(&ground, &mut versions),
        docker::check(&ground, &mut versions),
        concourse::check(&ground, &mut versions),
    ]
    .concat()
}

/// Why an engine is not looked at, when the configuration leaves it alone.
fn left_alone(engine: &str, configure: Configure) -> Option<Check> {
    let why = format!("the configuration leaves it alone ({engine}.configure: never)");
    (configure == Configure::Never).then(|| About::one(NAME, engine).skipped(why))
}

impl Ground<'_> {
    /// Where the wrapper is that an engine should run; without one nothing of it can be as it was meant.
    fn wrapper(&self, engine: &str) -> Result<&Path, Vec<Check>> {
        let failed = |why: &String| vec![About::one(NAME, engine).failed(why.clone(), APPLY)];
        self.wrapper.as_deref().map_err(failed)
    }

    /// Whether an engine's files are as they should be: what hinders, what differs, who fights for them.
    fn files(&self, engine: &str, desired: &Desired) -> Vec<Check> {
        let about = || About::one(NAME, engine);
        let mut checks: Vec<Check> = desired
            .notes
            .iter()
            .filter(|note| note.problem)
            .map(|note| about().failed(note.text.clone(), format!("put that right, then {APPLY}")))
            .collect();
        let now = Moment::of(SystemTime::now()).seconds();
        let plan = match Plan::make(self.root, desired, &self.receipt, None, false, now) {
            Ok(plan) => plan,
            Err(error) => {
                checks.push(about().failed(error.to_string(), "put that right first"));
                return checks;
            }
        };
        // The receipt holds what is other concerns', too.
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

    /// A restart, reload or next start that is owed: what runs has read an older configuration.
    fn owed(&self, engine: &str, unit: &str) -> Option<Check> {
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
        Some(About::one(NAME, engine).warning(evidence, remedy))
    }
}
