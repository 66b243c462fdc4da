//! What an operator can ask of a unit: the commands' answers, as an action gives them.

use reconcile::{Finding, Outcome as EffectOutcome, Settled};
use root::Attributes;
use serde_json::{Value, json};

use super::answer::Answer;
use super::hooks::{Ended, REPORTS};
use super::machine::{Failure, Machine};
use super::state::State;
use super::tools;
use super::{Action, Event};
use crate::config::Config;
use crate::detection::{Detection, Entry};
use crate::doctor::{self, Check, Status};
use crate::facts::Facts;
use crate::lease;
use crate::memory::Memory;
use crate::report::{default_name, new_file, take};
use crate::run::{ActiveConfig, ConfigFile, Outcome};
use crate::status::Status as MachineStatus;

/// How many archives of the action report stay.
const KEPT: usize = 4;

/// What an action answers, and why it failed, if it did.
struct Answered {
    answer: Answer,
    failure: Option<String>,
}

impl From<Answer> for Answered {
    fn from(answer: Answer) -> Self {
        Self { answer, failure: None }
    }
}

impl Machine<'_> {
    /// An error fails the action, and the unit goes on.
    pub(super) fn action(&self, action: Action) -> Result<Ended, tools::Error> {
        let answered = match action {
            Action::Detect => Ok(self.detect().into()),
            Action::Doctor => self.doctor().map(Answered::from),
            Action::Status => self.status().map(Answered::from),
            Action::Plan => self.plan().map(Answered::from),
            Action::Apply => self.apply(),
            Action::Undo => self.take_back(),
            Action::Report => self.report().map(Answered::from),
            Action::LeaseList => self.lease_list().map(Answered::from),
        };
        match answered {
            Ok(Answered { answer, failure }) => {
                self.tools.set(&answer)?;
                failure.map_or(Ok(()), |why| self.tools.fail(&why))?;
            }
            Err(Failure::Tools(error)) => return Err(error),
            Err(Failure::Config(text) | Failure::Installation(text)) => self.tools.fail(&text)?,
        }
        Ok(Ended { workload: None, is_well: true })
    }

    fn config(&self) -> Result<Config, Failure> {
        let active = ActiveConfig::of_file(&ConfigFile::default(), self.root);
        active.asked_for().map_err(|error| Failure::Config(error.to_string()))
    }

    fn detect(&self) -> Answer {
        let detection = Detection::new(&Facts::read(self.root));
        let amd = || detection.gpus.iter().filter(|gpu| gpu.vendor == "amd");
        Answer::new("rocworker detect")
            .with("gpus", amd().count())
            .with("usable", amd().filter(|gpu| gpu.usable).count())
            .with_each("gpu", amd().map(described))
            .with_json(&detection)
    }

    fn doctor(&self) -> Result<Answer, Failure> {
        let memory = Memory::read(self.root).map_err(Failure::installation)?;
        let facts = Facts::read(self.root).remembering(memory.chosen);
        let diagnosis = doctor::examine(self.root, &self.config()?, &facts, self.programs);
        let of = |status: Status| diagnosis.checks.iter().filter(move |check| check.status == status);
        Ok(Answer::new("rocworker doctor")
            .with("failed", diagnosis.failed)
            .with("warnings", diagnosis.warnings)
            .with_each("failed", of(Status::Failed).map(said))
            .with_each("warning", of(Status::Warning).map(said))
            .with_json(&diagnosis))
    }

    fn status(&self) -> Result<Answer, Failure> {
        let event = Event::Action(Action::Status);
        let status = match ActiveConfig::of_last_apply(&ConfigFile::default(), self.root).in_force() {
            Ok(config) => self.with_run(event, &config, MachineStatus::read),
            Err(wrong) => MachineStatus::without_configuration(self.root, wrong.to_string()),
        };
        let status = status.map_err(Failure::installation)?;
        let answer = Answer::new("rocworker status")
            .with("as-it-should-be", !status.is_off())
            .with("ours", status.ours.len())
            .with("drift", status.drift.len())
            .with("pending", status.pending.len())
            .with_each("drift", status.drift.iter().map(|it| format!("{}: {}", it.path.display(), it.reason)))
            .with_each("pending", status.pending.iter().map(|it| it.effect.to_string()))
            .with_each("contested", findings(&status.contested))
            .with_each("blocked", findings(&status.blocked))
            .with_each("left", findings(&status.left));
        let answer = match &status.problem {
            Some(problem) => answer.with("problem", problem),
            None => answer,
        };
        Ok(answer.with_json(&status))
    }

    fn plan(&self) -> Result<Answer, Failure> {
        let event = Event::Action(Action::Plan);
        let planned = self.with_run(event, &self.config()?, |run| run.plan(None));
        let planned = planned.map_err(Failure::installation)?;
        let changes = &planned.plan.changes;
        Ok(Answer::new("rocworker plan")
            .with("changes", changes.len())
            .with_each("change", changes.iter().map(|it| format!("{}: {}", it.path.display(), it.reason)))
            .with_each("then", planned.announced.clone())
            .with_each("blocked", findings(&planned.plan.blocked))
            .with_json(&planned))
    }

    /// What the hook config-changed does, and from now on does again after an undo.
    fn apply(&self) -> Result<Answered, Failure> {
        let turn = self.turn()?;
        let mut state = State::read(self.root).map_err(Failure::installation)?;
        if state.is_taken_back {
            state.is_taken_back = false;
            state.write(self.root).map_err(Failure::installation)?;
        }
        let event = Event::Action(Action::Apply);
        let brought = self.bring(event, &turn)?;
        self.tell(event, &brought.workload)?;
        let applied = brought.applied.unwrap_or_default();
        let failure = applied.falls_short().then(|| brought.workload.text.clone());
        let answer = Answer::new("rocworker status").with("status", brought.workload.text);
        Ok(Answered { answer: of_applied(answer, &applied).with_json(&applied), failure })
    }

    /// Takes back what is ours, and leaves it so until the action apply.
    fn take_back(&self) -> Result<Answered, Failure> {
        let force = match self.tools.parameters()?.get("force") {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::Bool(true)) => true,
            Some(other) => {
                return Err(Failure::Config(format!("force is {other}, and neither true nor false")));
            }
        };
        let event = Event::Action(Action::Undo);
        let _turn = self.turn()?;
        let mut state = State::read(self.root).map_err(Failure::installation)?;
        (state.is_taken_back, state.undo_ended) = (true, false);
        state.write(self.root).map_err(Failure::installation)?;
        let undone = self.undo(event, force)?;
        self.tools.status(&self.after_undo(&undone, &mut state)?)?;
        let failure = undone.failed.first().map(|it| format!("{}: {}", it.path.display(), it.text));
        let answer = Answer::new("rocworker status")
            .with("changes", undone.changes.len())
            .with_each("failed", findings(&undone.failed))
            .with_each("left", findings(&undone.left))
            .with_each("effect", settled(&undone.effects))
            .with_json(&undone);
        Ok(Answered { answer, failure })
    }

    /// The archive stays on the machine: an answer is kept by the controller, and is no place for it.
    fn report(&self) -> Result<Answer, Failure> {
        let config = self.config().map_err(|error| error.to_string());
        let config = config.as_ref().map_err(Clone::clone);
        let report = take(self.root, config, self.programs, self.now).map_err(Failure::installation)?;
        if !self.root.exists(REPORTS) {
            let how = Attributes { mode: 0o700, owner: None };
            self.root.make_folder(REPORTS, how).map_err(Failure::installation)?;
        }
        let path = std::path::Path::new(REPORTS).join(default_name(self.root, self.now));
        new_file(&self.root.shown(&path), &report.bytes).map_err(Failure::installation)?;
        self.sweep_reports()?;
        let path = path.display().to_string();
        Ok(Answer::new("rocworker report")
            .with("path", &path)
            .with("bytes", report.bytes.len())
            .with("entries", report.entries)
            .with("fetch", format!("juju ssh {} sudo cat {path} > report.tar.gz", self.unit()))
            .with_json(&json!({
                "schema_version": 1,
                "path": path,
                "bytes": report.bytes.len(),
                "entries": report.entries,
                "left_out": report.left_out.len(),
            })))
    }

    /// Removes archives but the last ones: their names hold the moment, so that the oldest comes first.
    fn sweep_reports(&self) -> Result<(), Failure> {
        let mut names = self.root.list(REPORTS).map_err(Failure::installation)?;
        names.sort();
        for name in names.iter().take(names.len().saturating_sub(KEPT)) {
            let path = std::path::Path::new(REPORTS).join(name);
            self.root.remove(path).map_err(Failure::installation)?;
        }
        Ok(())
    }

    fn lease_list(&self) -> Result<Answer, Failure> {
        let (leases, waiting) = lease::list(self.root).map_err(Failure::installation)?;
        let of = |it: &lease::Held| {
            let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
            if let Some(process) = &it.process {
                return format!("{} {process}", it.render);
            }
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

fn of_applied(answer: Answer, applied: &Outcome) -> Answer {
    let changes = &applied.changes;
    answer
        .with("changes", changes.len())
        .with_each("change", changes.iter().map(|it| format!("{}: {}", it.path.display(), it.reason)))
        .with_each("failed", findings(&applied.failed))
        .with_each("blocked", findings(&applied.blocked))
        .with_each("effect", settled(&applied.effects))
}

fn findings(findings: &[Finding]) -> impl Iterator<Item = String> {
    findings.iter().map(|it| format!("{}: {}", it.path.display(), it.text))
}

fn settled(effects: &[Settled]) -> impl Iterator<Item = String> {
    effects.iter().filter(|it| it.outcome != EffectOutcome::Skipped).map(|it| it.text.clone())
}

fn said(check: &Check) -> String {
    let subject = check.subject.as_ref().map_or_else(String::new, |subject| format!(" {subject}"));
    let remedy = check.remedy.as_ref().map_or_else(String::new, |remedy| format!(": {remedy}"));
    format!("{}{subject}: {}{remedy}", check.name, check.evidence)
}

/// `0 0000:64:00.0 Phoenix1 gfx1103 /dev/dri/renderD128: usable`
fn described(gpu: &Entry) -> String {
    let render = gpu.render.as_ref().map(|path| path.display().to_string());
    let words = [
        gpu.index.map(|index| index.to_string()),
        gpu.pci.clone(),
        gpu.name.clone(),
        gpu.gfx.clone(),
        render,
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    let verdict =
        if gpu.usable { "usable".to_owned() } else { format!("not usable: {}", gpu.problems.join("; ")) };
    format!("{}: {verdict}", words.join(" "))
}
