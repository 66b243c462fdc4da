//! What rocworker manages on a machine, and how the machine differs from the desired state.

use std::path::PathBuf;

use host::facts::Facts;
use reconcile::{Change, Finding, Note, Resource};
use root::Root;
use serde::Serialize;

use crate::daemon::socket::{Answer, ask};
use crate::desired;
use crate::memory::AppliedConfig;
use crate::partition::{Difference, differences};
use crate::run::{Error, Phase, Planned, Run, State};

/// What is managed, what differs and what is pending. `status --output json`, documented in docs/json.md.
#[derive(Debug, Serialize)]
pub struct Status {
    #[serde(flatten)]
    pub state: State,
    /// Why the desired state is unknown; then the drift is unknown too.
    pub problem: Option<String>,
    /// The configuration's error, where it is the cause of `problem`.
    #[serde(skip)]
    pub wrong: Option<config::Error>,
    /// Whether an apply waits for a person's decision, which the first note asks for.
    #[serde(skip)]
    pub is_undecided: bool,
    /// What an apply would change now.
    pub drift: Vec<Change>,
    pub contested: Vec<Finding>,
    pub blocked: Vec<Finding>,
    pub left: Vec<Finding>,
    /// Files that are as they should be and that rocworker did not make, as far as it remembers: undo leaves them.
    pub found: Vec<Resource>,
    /// What words of gpu-device-ids meant when they were first applied, and where that is now.
    #[serde(rename = "chosen")]
    pub pinned: Vec<PinnedNow>,
    pub notes: Vec<Note>,
    /// What the daemon says of itself; null where none runs.
    pub daemon: Option<Answer>,
}

#[derive(Debug, Serialize)]
pub struct PinnedNow {
    pub word: String,
    pub pci: String,
    pub uuid: Option<String>,
    pub partition: Option<u32>,
    /// Null: it is not there any more.
    pub index: Option<u32>,
    pub render: Option<PathBuf>,
}

impl Status {
    /// Reads the machine's state, and plans what an apply would change. It writes nothing.
    pub fn read(run: &Run<'_>) -> Result<Self, Error> {
        let state = State::read(run.root)?;
        let (mut planned, problem, wrong) = match run.planned(state.clone()) {
            Ok(planned) => (planned, None, None),
            // A pinned device that is gone is listed below, beside what is managed all the same.
            Err(Error::Desired(error)) => {
                let problem = error.to_string();
                let wrong = if let desired::Error::Config(wrong) = error { Some(wrong) } else { None };
                (Planned::default(), Some(problem), wrong)
            }
            Err(other) => return Err(other),
        };
        if let Some(other) = AppliedConfig::of(run.root, run.config).and_then(|it| it.other) {
            let text = format!("what should be is what {} says", other.display());
            planned.notes.push(Note { about: "configuration".to_owned(), text, problem: false });
        }
        let of_modes = differences(run.root, &run.config.partitions).into_iter();
        let note = |it: Difference| Note { about: "partitions".to_owned(), text: it.text, problem: true };
        planned.notes.extend(of_modes.map(note));
        Ok(Self { wrong, ..Self::of(run.root, state, planned, problem) })
    }

    /// The machine where the configuration is wrong: the desired state is unknown. It still lists what is managed
    /// and what the daemon says, which may run by an earlier one. Writes nothing.
    pub fn without_configuration(root: &Root, problem: String) -> Result<Self, Error> {
        Ok(Self::of(root, State::read(root)?, Planned::default(), Some(problem)))
    }

    fn of(root: &Root, state: State, planned: Planned, problem: Option<String>) -> Self {
        let facts = Facts::read(root).remembering(state.memory.pinned.clone());
        let pinned = state.memory.pinned.iter().map(|(word, choice)| {
            let gpu = facts.amd().find(|gpu| choice.is(gpu));
            PinnedNow {
                word: word.clone(),
                pci: choice.pci.clone(),
                uuid: choice.uuid.clone(),
                partition: choice.partition,
                index: gpu.and_then(|gpu| gpu.index),
                render: gpu.and_then(|gpu| gpu.render.as_ref()).map(|node| node.path.clone()),
            }
        });
        let Planned { plan, notes, is_undecided, .. } = planned;
        Self {
            problem,
            wrong: None,
            is_undecided,
            drift: plan.changes,
            contested: plan.contested,
            blocked: plan.blocked,
            left: plan.left,
            found: plan.found,
            pinned: pinned.collect(),
            state,
            notes,
            daemon: ask(root),
        }
    }

    /// Whether the machine is not in sync, or the daemon has a problem. What no apply has set up is in sync.
    pub fn needs_attention(&self) -> bool {
        (self.state.phase() != Phase::Unmanaged || !self.state.pending.is_empty()) && self.has_findings()
    }

    fn has_findings(&self) -> bool {
        self.problem.is_some()
            || self.notes.iter().any(|note| note.problem)
            || !self.drift.is_empty()
            || !self.contested.is_empty()
            || !self.blocked.is_empty()
            || !self.left.is_empty()
            || !self.state.pending.is_empty()
            || matches!(&self.daemon, Some(Answer::Report(report)) if report.needs_attention())
    }
}
