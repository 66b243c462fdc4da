//! What came of an engine, and the checks that say so.

use super::NAME;
use super::answer::Answer;
use super::question::Question;
use super::verdict;
use crate::check::{About, Check};

/// What came of trying an engine.
pub(crate) enum CanaryResult {
    /// It is not here, or not ours to try.
    Skipped(String),
    /// No container came of it.
    Failed { evidence: String, remedy: String },
    /// A container ran, and said what it saw.
    Answered(Box<Answered>),
}

pub(crate) struct Answered {
    pub(crate) question: Question,
    pub(crate) answer: Answer,
    /// How the GPU was asked for.
    pub(crate) way: String,
    /// What to do when the container has not what it asked for, or more.
    pub(crate) remedy: String,
    /// What of it could not be removed.
    pub(crate) left: Option<String>,
}

impl CanaryResult {
    pub(crate) fn failed(evidence: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Failed { evidence: evidence.into(), remedy: remedy.into() }
    }

    pub(crate) fn checks(self, engine: &str) -> Vec<Check> {
        let about = || About::one(NAME, engine);
        match self {
            Self::Skipped(why) => vec![about().skipped(why)],
            Self::Failed { evidence, remedy } => vec![about().failed(evidence, remedy)],
            Self::Answered(it) => {
                let mut checks = verdict::checks(about, &it.question, &it.answer, &it.way, &it.remedy);
                checks.extend(it.left.map(|left| about().warning(left, "remove it by hand")));
                checks
            }
        }
    }
}
