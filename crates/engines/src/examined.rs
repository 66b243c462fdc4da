//! What the checks of every engine ask: whether its files are in sync, whether a restart is pending, and what the engine
//! itself says is in effect.

use std::path::{Path, PathBuf};
use std::time::Duration;

use check::{APPLY, About, Check, NO_COMMANDS};
use config::Config;
use host::facts::Facts;
use host::timestamp::Timestamp;
use reconcile::command::Programs;
use reconcile::{Desired, Effect, Plan, Receipt, Resource};
use render::Templates;
use root::Root;
use serde_json::Value;

use super::Engine;

/// The component of doctor that these checks belong to.
pub const CHECKS: &str = "engines";

/// How long an engine may take to tell its configuration.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Examined<'a> {
    pub root: &'a Root,
    pub config: &'a Config,
    pub facts: &'a Facts,
    /// `None` beneath another Root than `/`, where no engine is asked.
    pub programs: Option<&'a Programs>,
    /// The path of the wrapper's program, as engines' configuration names it, or why there is none.
    pub wrapper: Result<PathBuf, String>,
    pub templates: Templates,
    pub receipt: Receipt,
    /// The time, by the machine's clock.
    pub now: Timestamp,
}

/// What an engine that runs says of itself.
pub(super) struct InEffect {
    /// The program that the managed runtime runs; `None`: the engine has no such runtime.
    pub(super) runtime: Option<String>,
    /// The folders from which the engine reads CDI specs, or a sentence that it knows no CDI.
    pub(super) spec_folders: Result<Vec<String>, String>,
}

impl Examined<'_> {
    /// The checks of an engine that knows the wrapper by a runtime's name. `desired`: what it should have, by the wrapper's
    /// path. `daemon`: who reads that, and by what `remedy` again. `says`: what it says of itself, or the check that says
    /// why not.
    pub(super) fn engine(
        &self,
        engine: &Engine,
        (daemon, remedy): (&str, &str),
        desired: impl Fn(&Path) -> Desired,
        says: impl Fn(&Programs) -> Result<InEffect, Check>,
    ) -> Result<Vec<Check>, Check> {
        let about = || About::one(CHECKS, engine.name);
        let wrapper = self.wrapper(engine.name)?;
        let desired = desired(wrapper);
        let mut checks = self.files(engine.name, &desired);
        // What runs cannot follow files that an apply has still to write.
        let remedy = if checks.is_empty() { remedy } else { APPLY };
        let paths: Vec<_> = desired.actions.iter().map(|it| it.path.display().to_string()).collect();
        if checks.is_empty() && !paths.is_empty() {
            let says = if paths.len() == 1 { "says" } else { "say" };
            checks.push(about().ok(format!("{} {says} what was meant", paths.join(" and "))));
        }
        checks.extend(self.pending(engine.name, engine.unit.unwrap_or_default()));
        let not_asked = || about().skipped(format!("{daemon} is not asked: {NO_COMMANDS}"));
        let InEffect { runtime, spec_folders } = match self.programs.ok_or_else(not_asked).and_then(says) {
            Ok(in_effect) => in_effect,
            Err(check) => {
                checks.push(check);
                return Ok(checks);
            }
        };
        let name = (engine.settings)(self.config).map_or("", |settings| &settings.runtime);
        checks.push(match runtime {
            Some(path) if Path::new(&path) == wrapper => {
                about().ok(format!("{daemon} runs {path} for the runtime {name}"))
            }
            Some(other) => {
                let evidence =
                    format!("{daemon} runs {other} for the runtime {name}, not {}", wrapper.display());
                about().failed(evidence, remedy)
            }
            None => about().failed(format!("the {daemon} that runs has no runtime {name}"), remedy),
        });
        let folder = self.config.cdi.path.parent().unwrap_or(Path::new("/"));
        checks.push(match spec_folders {
            Ok(read) if read.iter().any(|it| Path::new(it) == folder) => {
                about().ok(format!("{daemon} reads CDI specs from {}", folder.display()))
            }
            Ok(_) => about().failed(format!("{daemon} reads no CDI specs from {}", folder.display()), remedy),
            Err(why) => about().skipped(why),
        });
        Ok(checks)
    }

    /// The wrapper that an engine should run; without one nothing of the engine's can be in sync.
    pub(super) fn wrapper(&self, engine: &str) -> Result<&Path, Check> {
        let without =
            |_: &String| About::one(CHECKS, engine).skipped("not asked: the check of the wrapper says why");
        self.wrapper.as_deref().map_err(without)
    }

    /// Whether an engine's files are in sync: what hinders, what differs, who keeps overwriting them.
    pub(super) fn files(&self, engine: &str, desired: &Desired) -> Vec<Check> {
        let about = || About::one(CHECKS, engine);
        let problems = desired.notes.iter().filter(|note| note.problem);
        let mut checks: Vec<Check> = problems
            .map(|note| about().failed(note.text.clone(), format!("put that right, then {APPLY}")))
            .collect();
        let plan = Plan::make(self.root, desired, &self.receipt, None, false, self.now.seconds());
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

    /// A restart, reload or next start that is pending: what runs has read an older configuration.
    pub(super) fn pending(&self, engine: &str, unit: &str) -> Option<Check> {
        let remedy = self.receipt.pending.iter().find_map(|pending| match &pending.effect {
            Effect::Reload { unit: of } if of == unit => Some(format!("systemctl reload {unit}")),
            Effect::NextStart { unit: of, .. } if of == unit => Some(format!(
                "systemctl restart {unit} when what runs there may end, or rocworker apply with restart: now"
            )),
            Effect::Restart { unit: of, .. } if of == unit => {
                Some(format!("systemctl restart {unit}, or rocworker apply with restart: drain or now"))
            }
            _ => None,
        })?;
        let evidence = format!("{unit} still runs with its old configuration");
        Some(About::one(CHECKS, engine).warning(evidence, remedy))
    }
}

/// The folders of a list in what an engine says.
pub(super) fn folders(list: &Value) -> Vec<String> {
    let folders = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    folders.map(str::to_owned).collect()
}
