use super::{Change, Effect};
use crate::apt::Step;

/// What a run reports while it executes a plan: a run that hangs shows where.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress<'a> {
    /// Before a change is made.
    Begins(&'a Change),
    /// After it was made.
    Made(&'a Change),
    /// A change that takes long has come so far.
    Comes(&'a Change, Step),
    /// Something else has to end first: a sentence that says what, and for how long it is waited for.
    Waits(String),
    /// Before something is done that changes have made necessary.
    Settles(&'a Effect),
}
