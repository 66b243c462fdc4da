//! The result of an effect.

use std::time::Duration;

use crate::model::Outcome;
use crate::receipt::Draining;

/// The time limit for a tool.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) enum Came {
    Ended(Outcome, String),
    /// The unit is to get a signal to end, or got it: the run saves this before it continues.
    Drain(Draining),
}

/// The result, or why the effect failed.
pub(super) type Ran = Result<Came, String>;

pub(super) fn done(text: impl Into<String>) -> Ran {
    Ok(Came::Ended(Outcome::Done, text.into()))
}

pub(super) fn skipped(text: impl Into<String>) -> Ran {
    Ok(Came::Ended(Outcome::Skipped, text.into()))
}

pub(super) fn pending(text: impl Into<String>) -> Ran {
    Ok(Came::Ended(Outcome::Pending, text.into()))
}
