//! What the daemon reports: its answer to `status`, documented in docs/json.md. The daemon holds what it knows in the
//! same struct.

use std::collections::BTreeSet;
use std::path::PathBuf;

use reconcile::{Finding, Outcome as EffectOutcome, Pending, Resource, Restarts};
use serde::{Deserialize, Serialize};

use super::scheduler::Cause;
use crate::run::{Differs, Outcome};

/// Times are seconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub schema_version: u32,
    pub version: String,
    pub pid: u32,
    pub since: u64,
    /// Whether it changes anything, or only reports what differs. Null, as `restart`, while no configuration is in
    /// force.
    pub enforce: Option<bool>,
    pub restart: Option<Restarts>,
    /// Whether an apply has set this machine up, and no undo has come since; null before the first look.
    pub set_up: Option<bool>,
    pub config: ConfigReport,
    pub sources: Sources,
    pub counts: Counts,
    pub last: Option<Last>,
    /// The task that fails, and when the daemon tries it again.
    pub failing: Option<Failing>,
    pub contested: Vec<Remark>,
    pub blocked: Vec<Remark>,
    pub left: Vec<Remark>,
    pub differs: Vec<Differs>,
    /// Until when the daemon keeps the tags of GPUs that have gone.
    pub tags_held_until: Option<u64>,
    pub pending: Vec<Pending>,
    /// What was configured and is not applied: an engine that is left alone, a GPU that is left out.
    #[serde(default)]
    pub problems: Vec<Problem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// `containerd`, `gpu`, `wrapper`.
    pub about: String,
    pub text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigReport {
    pub path: PathBuf,
    /// Why the file is not in force as it is now: the last good configuration is, or none. The file is wrong, by itself
    /// or on this machine, or the last apply was by another.
    pub problem: Option<String>,
    pub in_force: bool,
}

/// Why events do not arrive; null where they do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    pub kernel: Option<String>,
    pub files: Option<String>,
}

/// Counts since the daemon's start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Events of the kernel and of files that mattered.
    pub kernel: u64,
    pub files: u64,
    /// How often the kernel dropped events.
    pub lost: u64,
    pub looks: u64,
    pub changes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    pub at: u64,
    pub took_ms: u64,
    pub causes: BTreeSet<Cause>,
    /// What the last look changed.
    pub changed: Vec<Resource>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    pub since: u64,
    /// Looks in a row that have failed.
    pub times: u32,
    /// When it is tried again, unless an event comes before.
    pub again: Option<u64>,
    pub what: Vec<Remark>,
}

/// A sentence about `path`, or about the whole look where there is no path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    pub path: Option<Resource>,
    pub text: String,
}

impl From<&Finding> for Remark {
    fn from(finding: &Finding) -> Self {
        Self { path: Some(finding.path.clone()), text: finding.text.clone() }
    }
}

impl From<String> for Remark {
    fn from(text: String) -> Self {
        Self { path: None, text }
    }
}

impl Report {
    /// The report of a daemon that starts now, with the configuration at `path`.
    pub fn new(since: u64, path: PathBuf) -> Self {
        Self {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            since,
            config: ConfigReport { path, ..ConfigReport::default() },
            ..Self::default()
        }
    }

    /// Notes what a look has left. The answer is what failed.
    pub fn note(&mut self, outcome: Outcome) -> Vec<Remark> {
        let remarks = |findings: &[Finding]| findings.iter().map(Remark::from).collect::<Vec<_>>();
        let effects = outcome.effects.iter().filter(|effect| effect.outcome == EffectOutcome::Failed);
        let mut failed: Vec<Remark> = outcome.problem.iter().map(|it| it.to_string().into()).collect();
        failed.extend(remarks(&outcome.failed));
        failed.extend(effects.map(|effect| effect.text.clone().into()));
        for finding in &outcome.failed {
            tracing::error!("{}: {}", finding.path.display(), finding.text);
        }
        self.contested = remarks(&outcome.contested);
        self.blocked = remarks(&outcome.blocked);
        self.left = remarks(&outcome.left);
        self.differs = outcome.differs;
        self.pending = outcome.state.pending;
        let problems = outcome.notes.into_iter().filter(|note| note.problem);
        self.problems = problems.map(|note| Problem { about: note.about, text: note.text }).collect();
        failed
    }

    /// Whether the report names a problem that a person should look at.
    pub fn needs_attention(&self) -> bool {
        self.config.problem.is_some()
            || self.failing.is_some()
            || !self.contested.is_empty()
            || !self.problems.is_empty()
    }

    /// The report in a sentence, for systemd's STATUS= and for people.
    pub fn sentence(&self) -> String {
        let of = |count: usize, one: &str| match count {
            1 => format!("1 {one}"),
            n => format!("{n} {one}s"),
        };
        if let Some(problem) = self.config.problem.as_ref() {
            return if self.config.in_force {
                format!("by the last good configuration: {problem}")
            } else {
                format!("waiting for a configuration: {problem}")
            };
        }
        match (self.set_up, &self.failing) {
            (None, _) => return "looking at the machine".to_owned(),
            (_, Some(failing)) => {
                let what = failing.what.first().map(|it| it.text.as_str()).unwrap_or_default();
                return format!("failed {} in a row: {what}", of(failing.times as usize, "time"));
            }
            (Some(false), None) => {
                return "nothing here is rocworker's: rocworker apply sets it up".to_owned();
            }
            (Some(true), None) => {}
        }
        let parts = [
            (self.contested.len(), "contested path"),
            (self.blocked.len(), "blocked path"),
            (self.differs.len(), "difference"),
            (self.pending.len(), "pending restart"),
        ];
        let mut counted: Vec<String> =
            parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, one)| of(count, one)).collect();
        counted.extend(self.problems.first().map(|first| {
            let count = of(self.problems.len(), "problem");
            let which = if self.problems.len() == 1 { "" } else { ", the first" };
            format!("{count}{which}: {}: {}", first.about, first.text)
        }));
        if counted.is_empty() { "all as it should be".to_owned() } else { counted.join(", ") }
    }
}
