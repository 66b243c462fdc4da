use serde::{Deserialize, Serialize};

use super::{Action, Content, Effect, Entry, KindName, Resource, Stage, State, Unpacked, Value};
use crate::apt::{self, Installer};

/// One change, as a plan lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    pub kind: KindName,
    pub path: Resource,
    pub change: Verb,
    pub reason: String,
    pub stage: Stage,
    /// The effects that the change makes necessary.
    pub effects: Vec<Effect>,
    /// The present state; `to` is the state afterwards.
    pub from: State,
    pub to: State,
    /// The lines that change, where both are text.
    pub diff: Option<String>,
    #[serde(skip)]
    pub(crate) needs: Vec<Resource>,
    #[serde(skip)]
    pub(crate) target: Target,
    /// The resource's entry in the receipt afterwards; `None`: it has none.
    #[serde(skip)]
    pub(crate) entry: Option<Box<Entry>>,
    /// Bytes that must be kept before anything is written.
    #[serde(skip)]
    pub(crate) keep: Option<Vec<u8>>,
}

/// The way in which a change alters its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Something else is there: an earlier managed state, or an unmanaged one that is kept for undo.
    Create,
    /// Something else is there: an earlier managed one, or an unmanaged one that is kept for undo.
    Replace,
    /// Managed keys go into a file of another program.
    Edit,
    /// A managed state has changed since it was applied.
    Repair,
    /// A node gets its group and mode.
    Permissions,
    /// The kernel gets another value.
    Set,
    /// rocworker restores the state before the apply.
    Restore,
    /// rocworker removes the path, because it was absent before.
    Remove,
}

impl Verb {
    /// The verb for this kind of resource: as what is to be done, and as what was done.
    #[must_use]
    pub fn words(self, of: &Resource) -> (&'static str, &'static str) {
        match (self, of) {
            (Self::Create, Resource::Package(_)) => ("install", "installed"),
            (Self::Create, Resource::Module(_)) => ("load", "loaded"),
            (Self::Remove, Resource::Module(_)) => ("unload", "unloaded"),
            (Self::Create, _) => ("create", "created"),
            (Self::Replace, _) => ("replace", "replaced"),
            (Self::Edit, _) => ("edit", "edited"),
            (Self::Repair, _) => ("repair", "repaired"),
            (Self::Permissions, _) => ("set group and mode of", "set group and mode of"),
            (Self::Set, _) => ("set", "set"),
            (Self::Restore, _) => ("restore", "restored"),
            (Self::Remove, _) => ("remove", "removed"),
        }
    }
}

/// How a path is brought into its new state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Put(Content),
    Node {
        mode: u32,
        uid: Option<u32>,
        gid: u32,
    },
    Absent,
    Package(Doing),
    Unpacked(Unpacked),
    /// A folder that was unpacked goes, with everything in it.
    UnpackedGone,
    /// Loads a module of the kernel.
    Load,
    /// Unloads modules in this order: the first must go, the others go where nothing else needs them.
    Unload(Vec<String>),
    Value(Value),
}

impl Target {
    /// Whether nothing is at the path afterwards.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Absent | Self::UnpackedGone)
    }

    /// Whether the path is removed, or replaced by a rename.
    pub(crate) fn is_replacement(&self) -> bool {
        self.is_gone() || matches!(self, Self::Put(Content::File { .. } | Content::Link { .. }))
    }

    /// Whether the change is possible on the running machine only.
    pub(crate) fn needs_host(&self) -> bool {
        let is_here = matches!(self, Self::Put(Content::File { .. } | Content::Link { .. }));
        !is_here && !matches!(self, Self::Node { .. } | Self::Absent | Self::Value(_))
    }

    /// The bytes of the file that will be there, where they are known.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        if let Self::Put(Content::File { bytes, .. }) = self { Some(bytes) } else { None }
    }
}

/// A request to apt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Installs the package and what it needs, or completes one that is there in part.
    Install { version: Option<String> },
    /// Installs the package from a file, and runs the program in it.
    InstallBy(Installer),
    /// Removes these packages and nothing else, those of `purge` with their configuration. `force`: also
    /// what somebody has changed of them since the apply.
    Remove { names: Vec<String>, purge: Vec<String>, force: bool },
}

impl Change {
    /// Whether the change reverts something: rocworker no longer manages the resource afterwards.
    #[must_use]
    pub fn is_revert(&self) -> bool {
        self.entry.is_none()
    }

    /// What `apt-get install` is asked for this change: packages that come, and each that goes as `NAME-`.
    pub(crate) fn apt_arguments(&self) -> Vec<String> {
        match (&self.path, &self.target) {
            (Resource::Package(name), Target::Package(Doing::Install { version })) => {
                vec![apt::wanted(name, version.as_deref())]
            }
            (_, Target::Package(Doing::Remove { names, .. })) => apt::going(names),
            _ => Vec::new(),
        }
    }

    /// Whether the change takes long because it fetches, installs, unpacks or compiles. Where a killed run
    /// has already brought everything, the next run only records it.
    #[must_use]
    pub fn takes_long(&self) -> bool {
        self.target.needs_host() && self.from != self.to
    }

    /// A change that applies an action.
    pub(crate) fn forward(
        action: &Action,
        change: Verb,
        states: (State, State),
        target: Target,
        entry: Entry,
    ) -> Self {
        let change = Self::back(&entry, change, states, target);
        Self {
            reason: action.reason.clone(),
            effects: action.effects.clone(),
            needs: action.needs.clone(),
            entry: Some(Box::new(entry)),
            ..change
        }
    }

    /// A change that reverts an entry.
    pub(crate) fn back(entry: &Entry, change: Verb, (from, to): (State, State), target: Target) -> Self {
        let reason = match change {
            Verb::Edit => "rocworker's keys leave it",
            Verb::Remove => "it was not there before",
            _ => "back to what it was before",
        };
        Self {
            kind: entry.managed.kind(),
            path: entry.path.clone(),
            change,
            reason: reason.to_owned(),
            stage: entry.stage,
            effects: entry.effects.clone(),
            from,
            to,
            diff: None,
            needs: Vec::new(),
            target,
            entry: None,
            keep: None,
        }
    }
}
