//! What an operator can ask of a unit: the commands' answers, as an action gives them.

use std::path::Path;

use config::Config;
use host::facts::Facts;
use inventory::{Gpu, names};
use juju::answer::Answer;
use juju::charm::Undo;
use juju::options::{UNTAGGED, WrongConfig};
use juju::tools;
use reconcile::{Change, Finding, Outcome as EffectOutcome, Settled};
use root::Attributes;
use serde_json::{Value, json};

use super::hooks::{Ended, Machine};
use crate::detection::Detection;
use crate::doctor::{self, Check, Status};
use crate::lease;
use crate::memory::Memory;
use crate::report::{default_name, new_file, take};
use crate::run::{ConfigFile, Own, Unreadable};
use crate::status::Status as MachineStatus;

/// The folder into which the action `report` puts its archives.
pub(super) const REPORTS: &str = "/var/lib/rocworker/reports";
/// How many archives of the action `report` stay.
const KEPT: usize = 4;

impl Machine<'_> {
    /// An error fails the action, and the unit continues.
    pub(super) fn answer(&self, answered: anyhow::Result<Answer>) -> anyhow::Result<Ended> {
        let failure = match answered {
            Ok(Answer { pairs, failure, .. }) => {
                self.tools.set(&pairs)?;
                failure
            }
            Err(error) if error.is::<tools::Error>() => return Err(error),
            Err(error) => Some(error.to_string()),
        };
        failure.map_or(Ok(()), |why| self.tools.fail(&why))?;
        Ok(Ended::default())
    }

    fn config(&self) -> Result<Config, Unreadable> {
        ConfigFile::default().asked_for(self.root)
    }

    pub(super) fn detect(&self) -> Answer {
        let facts = Facts::read(self.root);
        Answer::new("rocworker detect")
            .with("gpus", facts.amd().count())
            .with("usable", facts.usable().count())
            .with_each("gpu", facts.amd().map(described))
            .with_json(&Detection::new(&facts))
    }

    pub(super) fn doctor(&self) -> anyhow::Result<Answer> {
        let facts = Facts::read(self.root).remembering(Memory::read(self.root)?.pinned);
        let diagnosis = doctor::examine(
            self.root,
            &self.config()?,
            &facts,
            self.programs.as_ref(),
            Own::find().beside.as_deref(),
            self.now,
        );
        let of = |status: Status| diagnosis.checks.iter().filter(move |check| check.status == status);
        Ok(Answer::new("rocworker doctor")
            .with("failed", diagnosis.failed)
            .with("warnings", diagnosis.warnings)
            .with_each("failed", of(Status::Failed).map(in_a_line))
            .with_each("warning", of(Status::Warning).map(in_a_line))
            .with_json(&diagnosis))
    }

    pub(super) fn status(&self) -> anyhow::Result<Answer> {
        let status = match ConfigFile::default().in_force(self.root) {
            Ok(config) => MachineStatus::read(&self.pipeline(&config)),
            Err(wrong) => MachineStatus::without_configuration(self.root, wrong.to_string()),
        }?;
        let answer = Answer::new("rocworker status")
            .with("as-it-should-be", !status.needs_attention())
            .with("ours", status.state.receipt.entries.len())
            .with("drift", status.drift.len())
            .with("pending", status.state.pending.len())
            .with_each("drift", changes(&status.drift))
            .with_each("pending", status.state.pending.iter().map(|it| it.effect.to_string()))
            .with_each("contested", findings(&status.contested))
            .with_each("blocked", findings(&status.blocked))
            .with_each("left", findings(&status.left));
        let answer = match &status.problem {
            Some(problem) => answer.with("problem", problem),
            None => answer,
        };
        Ok(answer.with_json(&status))
    }

    pub(super) fn plan(&self) -> anyhow::Result<Answer> {
        let planned = self.pipeline(&self.config()?).plan(None)?;
        let question = planned.is_undecided.then(|| UNTAGGED.to_owned());
        Ok(Answer::new("rocworker plan")
            .with("changes", planned.plan.changes.len())
            .with_each("question", question)
            .with_each("change", changes(&planned.plan.changes))
            .with_each("then", planned.announced.clone())
            .with_each("blocked", findings(&planned.plan.blocked))
            .with_json(&planned))
    }

    /// What the hook config-changed does, and from now on does again after an undo.
    pub(super) fn apply_again(&self) -> anyhow::Result<Answer> {
        let (_lock, mut charm) = self.begin()?;
        if charm.undo != Undo::None {
            charm.undo = Undo::None;
            charm.write(self.root)?;
        }
        let (status, applied) = self.follow_options(&mut charm)?;
        self.set_status(&status)?;
        let applied = applied.unwrap_or_default();
        let answer = Answer::new("rocworker status")
            .with("status", &status.text)
            .with("changes", applied.changes.len())
            .with_each("change", changes(&applied.changes))
            .with_each("failed", findings(&applied.failed))
            .with_each("blocked", findings(&applied.blocked))
            .with_each("effect", settled(&applied.effects))
            .with_json(&applied);
        Ok(answer.failing(applied.falls_short().then_some(status.text)))
    }

    /// Reverts what is managed, and leaves the machine so until the action apply.
    pub(super) fn action_undo(&self) -> anyhow::Result<Answer> {
        let force = match self.tools.parameters()?.get("force") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(force)) => *force,
            Some(other) => {
                return Err(WrongConfig(format!("force is {other}, and neither true nor false")).into());
            }
        };
        let (_lock, mut charm) = self.begin()?;
        charm.undo = Undo::Begun;
        charm.write(self.root)?;
        let undone = self.undo(force)?;
        if let Ok(config) = self.config() {
            self.follow_port(&mut charm, &config)?;
        }
        self.tools.status(&self.status_after_undo(&undone, &mut charm)?)?;
        let answer = Answer::new("rocworker status")
            .with("changes", undone.changes.len())
            .with_each("failed", findings(&undone.failed))
            .with_each("left", findings(&undone.left))
            .with_each("effect", settled(&undone.effects))
            .with_json(&undone);
        Ok(answer.failing(findings(&undone.failed).next()))
    }

    /// Writes a report's archive, which stays on the machine: the controller keeps an action's answer, which is no
    /// place for an archive.
    pub(super) fn report(&self) -> anyhow::Result<Answer> {
        let config = self.config().map_err(|error| error.to_string());
        let report =
            take(self.root, config.as_ref().map_err(Clone::clone), self.programs.as_ref(), self.now)?;
        if !self.root.exists(REPORTS) {
            self.root.make_folder(REPORTS, Attributes { mode: 0o700, owner: None })?;
        }
        let path = Path::new(REPORTS).join(default_name(self.root, self.now));
        new_file(&self.root.shown(&path), &report.bytes)?;
        // The names of reports hold the time, so that the oldest comes first.
        let mut names = self.root.list(REPORTS)?;
        names.sort();
        for name in names.iter().take(names.len().saturating_sub(KEPT)) {
            self.root.remove(Path::new(REPORTS).join(name))?;
        }
        let path = path.display().to_string();
        Ok(Answer::new("rocworker report")
            .with("path", &path)
            .with("bytes", report.bytes.len())
            .with("entries", report.entries)
            .with("fetch", format!("juju ssh {} sudo cat {path} > report.tar.gz", self.unit_name()))
            .with_json(&json!({
                "schema_version": 1,
                "path": path,
                "bytes": report.bytes.len(),
                "entries": report.entries,
                "left_out": report.left_out.len(),
            })))
    }

    pub(super) fn lease_list(&self) -> anyhow::Result<Answer> {
        let (leases, waiting) = lease::list(self.root)?;
        let of = |it: &lease::Held| {
            if let Some(process) = &it.process {
                return format!("{} {process}", it.render);
            }
            let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
            let alive = it.alive_by.unwrap_or("nothing");
            format!("{} {} since {}, alive by {alive}", it.render, or_none(&it.id), or_none(&it.since))
        };
        Ok(Answer::new("rocworker lease list")
            .with("leases", leases.len())
            .with("waiting", waiting.len())
            .with_each("lease", leases.iter().map(of))
            .with_json(&json!({ "schema_version": 1, "leases": leases, "waiting": waiting })))
    }
}

fn changes(changes: &[Change]) -> impl Iterator<Item = String> {
    changes.iter().map(|it| format!("{}: {}", it.path, it.reason))
}

fn findings(findings: &[Finding]) -> impl Iterator<Item = String> {
    findings.iter().map(|it| format!("{}: {}", it.path, it.text))
}

fn settled(effects: &[Settled]) -> impl Iterator<Item = String> {
    effects.iter().filter(|it| it.outcome != EffectOutcome::Skipped).map(|it| it.text.clone())
}

fn in_a_line(check: &Check) -> String {
    let subject = check.subject.as_ref().map_or_else(String::new, |subject| format!(" {subject}"));
    let remedy = check.remedy.as_ref().map_or_else(String::new, |remedy| format!(": {remedy}"));
    format!("{}{subject}: {}{remedy}", check.name, check.evidence)
}

/// `0 0000:64:00.0 Phoenix1 gfx1103 /dev/dri/renderD128: usable`
fn described(gpu: &Gpu) -> String {
    let words = [
        gpu.index.map(|index| index.to_string()),
        gpu.pci.map(|address| address.to_string()),
        names::of(gpu),
        gpu.gfx.as_ref().ok().map(ToString::to_string),
        gpu.render.as_ref().map(|node| node.path.display().to_string()),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    let problems = gpu.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let verdict = if gpu.usable() { "usable".to_owned() } else { format!("not usable: {problems}") };
    format!("{}: {verdict}", words.join(" "))
}
