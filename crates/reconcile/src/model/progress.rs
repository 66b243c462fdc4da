use super::{Change, Effect};
use crate::apt::Step;

/// Reports of a run that executes a plan, so that a run that hangs shows where.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress<'a> {
    /// A change begins.
    Begins(&'a Change),
    /// A change is made.
    Made(&'a Change),
    /// A change that takes long has reached this step.
    Comes(&'a Change, Step),
    /// Something else has to end first: a sentence that says what, and for how long it is waited for.
    Waits(String),
    /// An effect of the changes begins.
    Settles(&'a Effect),
}
