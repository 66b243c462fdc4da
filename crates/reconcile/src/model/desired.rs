use serde::Serialize;

use super::{Action, UndoConstraints, Use};

/// The desired state in the order in which it is applied: resources come before those that name them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Desired {
    pub actions: Vec<Action>,
    pub notes: Vec<Note>,
    /// What a person has to decide before an apply changes anything.
    pub question: Option<Note>,
    /// Components whose desired state is not known: what rocworker manages of them stays.
    pub undecided: Vec<String>,
    /// The machine could not be observed, so that no component's desired state is known: everything managed
    /// stays.
    pub is_undecided: bool,
    /// What an undo has to respect.
    pub undo_constraints: UndoConstraints,
}

/// Something that a person should know and that no action changes: an engine that cannot, a worker left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The component: `containerd`, `docker`, `concourse`.
    pub about: String,
    /// A sentence, with what to do where there is something.
    pub text: String,
    /// Whether a configured part is not applied.
    pub problem: bool,
}

impl Desired {
    pub fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Adds a note that is no problem.
    pub fn note(&mut self, about: &str, text: impl Into<String>) {
        self.notes.push(Note { about: about.to_owned(), text: text.into(), problem: false });
    }

    /// Says that something is not applied, and why.
    pub fn problem(&mut self, about: &str, text: impl Into<String>) {
        self.notes.push(Note { about: about.to_owned(), text: text.into(), problem: true });
    }

    /// Asks a person something that an apply waits for.
    pub fn ask(&mut self, about: &str, text: impl Into<String>) {
        self.question = Some(Note { about: about.to_owned(), text: text.into(), problem: true });
    }

    /// Assigns every action to one component: `containerd`, `docker`.
    #[must_use]
    pub fn of(mut self, component: impl AsRef<str>) -> Self {
        for action in &mut self.actions {
            component.as_ref().clone_into(&mut action.component);
        }
        self
    }

    /// Keeps what the actions made while one of these settings names it.
    #[must_use]
    pub fn used_by(mut self, uses: &[Use]) -> Self {
        self.actions = self.actions.into_iter().map(|action| action.used_by(uses)).collect();
        self
    }

    /// Assigns every action to one component. Where there is a problem and no action, the component's desired state
    /// counts as unknown, so that no run reverts the component because a program once did not print its version.
    #[must_use]
    pub fn of_component_or_undecided(self, component: impl AsRef<str>) -> Self {
        let mut part = self.of(&component);
        if part.actions.is_empty() && part.notes.iter().any(|note| note.problem) {
            part.leave(component);
        }
        part
    }

    /// Keeps a component as it is, because its desired state is not known.
    pub fn leave(&mut self, component: impl AsRef<str>) {
        self.undecided.push(component.as_ref().to_owned());
    }

    /// Appends another component's desired state.
    pub fn extend(&mut self, other: Self) {
        self.undecided.extend(other.undecided);
        self.is_undecided |= other.is_undecided;
        self.actions.extend(other.actions);
        self.notes.extend(other.notes);
        self.question = self.question.take().or(other.question);
    }
}
