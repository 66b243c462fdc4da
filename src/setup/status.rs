use std::path::PathBuf;

use reconcile::{Change, Finding, KindName, Note, Pending, Receipt, Resource, Stage, Store};
use root::Root;
use serde::Serialize;

use super::{Error, Planned, Setup};
use crate::daemon::ask::{Answer, ask};
use crate::facts::Facts;
use crate::memory::Memory;

/// How the machine stands to what should be. `status --output json`, documented in docs/json.md.
#[derive(Debug, Serialize)]
pub struct Status {
    pub schema_version: u32,
    /// Why it cannot be said what should be; then nothing is known of drift.
    pub problem: Option<String>,
    /// What is ours on this machine.
    pub ours: Vec<Held>,
    /// What an apply would change now.
    pub drift: Vec<Change>,
    pub contested: Vec<Finding>,
    pub blocked: Vec<Finding>,
    pub left: Vec<Finding>,
    /// Files that are as they should be and that rocworker did not make, as far as it remembers: undo leaves them.
    pub found: Vec<Resource>,
    /// Restarts and the like that are still owed.
    pub pending: Vec<Pending>,
    /// What words of gpu-device-ids meant when they were first applied, and where that is now.
    pub chosen: Vec<ChosenNow>,
    pub notes: Vec<Note>,
    /// What the daemon says of itself; null where none runs.
    pub daemon: Option<Answer>,
}

#[derive(Debug, Serialize)]
pub struct Held {
    pub path: Resource,
    pub kind: KindName,
    pub stage: Stage,
    pub reason: String,
    /// How often it was put right after somebody had changed it.
    pub repairs: u32,
}

#[derive(Debug, Serialize)]
pub struct ChosenNow {
    pub word: String,
    pub pci: String,
    pub uuid: Option<String>,
    pub partition: Option<u32>,
    /// Null: it is not there any more.
    pub index: Option<u32>,
    pub render: Option<PathBuf>,
}

impl Setup<'_> {
    /// How the machine stands. Writes nothing.
    ///
    /// # Errors
    /// As [`Setup::plan`].
    pub fn status(&self) -> Result<Status, Error> {
        let memory = Memory::read(self.root)?;
        let receipt = Store::new(self.root).receipt()?;
        let premises = self.premises(&memory, &receipt);
        let (planned, problem) = match self.planned(&memory, &premises, &receipt) {
            Ok(planned) => (Some(planned), None),
            // What was chosen and is gone is told below, beside what stands all the same.
            Err(Error::Desired(error)) => (None, Some(error.to_string())),
            Err(other) => return Err(other),
        };
        let mut planned = planned.unwrap_or_default();
        planned.notes.extend(self.of_other_place());
        Ok(Status::of(self.root, &memory, &receipt, &premises.facts, planned, problem))
    }
}

impl Status {
    /// How the machine stands where the configuration is wrong: what should be is not known, and what is ours is told all
    /// the same, with what the daemon says, which may go on by an earlier one. Writes nothing.
    ///
    /// # Errors
    /// When what is ours or what is remembered cannot be read.
    pub fn without_configuration(root: &Root, problem: String) -> Result<Self, Error> {
        let memory = Memory::read(root)?;
        let receipt = Store::new(root).receipt()?;
        let facts = Facts::read(root).remembering(memory.chosen.clone());
        Ok(Self::of(root, &memory, &receipt, &facts, Planned::default(), Some(problem)))
    }

    fn of(
        root: &Root,
        memory: &Memory,
        receipt: &Receipt,
        facts: &Facts,
        planned: Planned,
        problem: Option<String>,
    ) -> Self {
        let ours = receipt.entries.iter().map(|entry| Held {
            path: entry.path.clone(),
            kind: entry.ours.kind(),
            stage: entry.stage,
            reason: entry.reason.clone(),
            repairs: entry.repairs.count,
        });
        let chosen = memory.chosen.iter().map(|(word, choice)| {
            let gpu = facts.amd().find(|gpu| choice.is(gpu));
            ChosenNow {
                word: word.to_owned(),
                pci: choice.pci.clone(),
                uuid: choice.uuid.clone(),
                partition: choice.partition,
                index: gpu.and_then(|gpu| gpu.index),
                render: gpu.and_then(|gpu| gpu.render.as_ref()).map(|node| node.path.clone()),
            }
        });
        let Planned { plan, notes, .. } = planned;
        Self {
            schema_version: 1,
            ours: ours.collect(),
            problem,
            drift: plan.changes,
            contested: plan.contested,
            blocked: plan.blocked,
            left: plan.left,
            found: plan.found,
            chosen: chosen.collect(),
            pending: receipt.owed(root).cloned().collect(),
            notes,
            daemon: ask(root),
        }
    }

    /// Whether the machine is not as it should be.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.problem.is_some()
            || self.notes.iter().any(|note| note.problem)
            || !self.drift.is_empty()
            || !self.contested.is_empty()
            || !self.blocked.is_empty()
            || !self.left.is_empty()
            || !self.pending.is_empty()
            || matches!(&self.daemon, Some(Answer::Report(report)) if report.is_off())
    }
}
