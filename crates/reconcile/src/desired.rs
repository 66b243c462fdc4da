use serde::Serialize;

use crate::Action;

/// What should be, in the order in which it is brought about: what is named before what names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Desired {
    pub actions: Vec<Action>,
    pub notes: Vec<Note>,
}

/// Something that a person should know and that no action changes: an engine that cannot, a worker left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// What it is about: `containerd`, `docker`, `concourse`.
    pub about: String,
    /// A sentence, with what to do where there is something.
    pub text: String,
    /// Whether something that was configured is not brought about.
    pub problem: bool,
}

impl Desired {
    pub fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Says something.
    pub fn note(&mut self, about: &str, text: impl Into<String>) {
        self.notes.push(Note { about: about.to_owned(), text: text.into(), problem: false });
    }

    /// Says that something is not brought about, and why.
    pub fn problem(&mut self, about: &str, text: impl Into<String>) {
        self.notes.push(Note { about: about.to_owned(), text: text.into(), problem: true });
    }

    /// What another concern wants, after what is wanted already.
    pub fn extend(&mut self, other: Self) {
        self.actions.extend(other.actions);
        self.notes.extend(other.notes);
    }
}
