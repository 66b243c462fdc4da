//! The receipt's entry of a resource: the state before, and what rocworker manages.

use std::path::PathBuf;

use edit::Edit;
use serde::{Deserialize, Serialize};

use super::{Action, Effect, Kind, KindName, Resource, Stage, State, Use};
use crate::digest::Digest;

/// After so many repairs of a path within [`REMEMBERED_S`], rocworker assumes that another program keeps
/// writing it.
const REPAIRS: u32 = 3;

/// Rocworker counts no repairs that are longer ago than this, in seconds: a day.
const REMEMBERED_S: u64 = 24 * 60 * 60;

/// A managed resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub path: Resource,
    pub stage: Stage,
    pub reason: String,
    /// The state before the first change; for an edited file, its present content without the managed keys.
    pub before: State,
    #[serde(flatten)]
    pub managed: Managed,
    /// The effects of a revert.
    pub effects: Vec<Effect>,
    #[serde(default)]
    #[serde(rename = "concern")]
    pub component: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<Use>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rival: Option<String>,
    #[serde(default)]
    pub repairs: Repairs,
    /// The mount point of the file system on which the resource was written; `/` is the machine's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<PathBuf>,
}

/// The part of a resource that rocworker manages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Managed {
    /// States that rocworker wrote, the newest first. The one before stands behind it, for a run that was
    /// killed between the two.
    Owned {
        states: Vec<State>,
    },
    Edited {
        edit: Edit,
        states: Vec<State>,
    },
    Node {
        mode: u32,
        gid: u32,
        /// Mode and group that rocworker gave it before these, for a run that was killed between the two.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        older: Option<(u32, u32)>,
    },
    Package {
        /// The packages that were not there before and came with this one, including itself. Empty where the
        /// package was removed.
        came: Vec<Came>,
        /// Whether a run has begun with the package, and has not recorded its end.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        begun: bool,
    },
    /// A folder that an archive has become.
    Unpacked {
        /// The archive's; what came of it is in the manifest of this name.
        sha256: Digest,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        begun: bool,
    },
    /// A module of the kernel that was not loaded.
    Module {
        /// The boot in which it was loaded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot: Option<String>,
        /// The modules that were loaded with this one, in that order, including itself.
        came: Vec<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        begun: bool,
    },
    /// A value of the kernel.
    Value {
        text: String,
        /// Whether the kernel only keeps it as a request.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_requested: bool,
        /// The boot in which it was written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot: Option<String>,
    },
}

/// How often a path was found changed and was repaired.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repairs {
    pub count: u32,
    /// Seconds since 1970.
    pub last: u64,
}

/// A package that came with one that was asked for, or is that one: it was not there before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Came {
    /// dpkg's name of the package.
    pub name: String,
    pub version: String,
    /// Configuration of an earlier installation was there before: undo leaves it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub had_configuration: bool,
    /// An installer asked for the package by name, so that apt notes it as installed by hand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// The package was seen as apt notes what came for the sake of others, after apt had come to its end: if apt has it
    /// otherwise later, a person has marked it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub noted: bool,
}

impl Entry {
    /// The entry with what its action says now, because what reverting it needs changes with the machine. What was
    /// there before and what is managed stay. `None` where nothing differs.
    pub(crate) fn as_of(&self, action: &Action) -> Option<Self> {
        let mut entry = Self {
            mount: self.mount.clone(),
            ..Self::of(action, self.before.clone(), self.managed.clone(), self.repairs)
        };
        // An installer may have added effects, which only the machine shows.
        if matches!(&action.kind, Kind::Package(package) if package.installer.is_some()) {
            entry.effects.clone_from(&self.effects);
        }
        (entry != *self).then_some(entry)
    }

    /// The entry of an action.
    pub(crate) fn of(action: &Action, before: State, managed: Managed, repairs: Repairs) -> Self {
        Self {
            path: action.path.clone(),
            stage: action.stage,
            reason: action.reason.clone(),
            before,
            managed,
            effects: action.effects_back().to_vec(),
            component: action.component.clone(),
            uses: action.uses.clone(),
            rival: action.rival.clone(),
            repairs,
            mount: None,
        }
    }
}

impl Managed {
    /// Whether a run has begun with the resource, and has not recorded its end.
    pub(crate) fn is_begun(&self) -> bool {
        match self {
            Self::Package { begun, .. } | Self::Unpacked { begun, .. } | Self::Module { begun, .. } => *begun,
            Self::Owned { .. } | Self::Edited { .. } | Self::Node { .. } | Self::Value { .. } => false,
        }
    }

    /// Forgets the state before the newest, which is the one at the path now. If the older one comes back,
    /// another program has put it there.
    pub(crate) fn forget_older(&mut self) {
        match self {
            Self::Owned { states } | Self::Edited { states, .. } => states.truncate(1),
            Self::Node { older, .. } => *older = None,
            Self::Package { begun, .. } | Self::Unpacked { begun, .. } | Self::Module { begun, .. } => {
                *begun = false
            }
            Self::Value { .. } => {}
        }
    }

    /// The packages that came with a managed package.
    pub(crate) fn came(&self) -> &[Came] {
        if let Self::Package { came, .. } = self { came } else { &[] }
    }

    /// Adds to what came with a package; one that is known is in this version now.
    pub(crate) fn add_came(&mut self, new: Vec<Came>) {
        let Self::Package { came, .. } = self else { return };
        for it in new {
            match came.iter_mut().find(|known| known.name == it.name) {
                Some(known) => known.version = it.version,
                None => came.push(it),
            }
        }
    }

    /// The states that rocworker wrote at the path, if it is a file or link.
    pub(crate) fn states(&self) -> &[State] {
        match self {
            Self::Owned { states } | Self::Edited { states, .. } => states,
            Self::Node { .. } | Self::Package { .. } | Self::Unpacked { .. } => &[],
            Self::Module { .. } | Self::Value { .. } => &[],
        }
    }

    #[must_use]
    pub fn kind(&self) -> KindName {
        match self {
            Self::Owned { .. } => KindName::Owned,
            Self::Edited { .. } => KindName::Edited,
            Self::Node { .. } => KindName::Node,
            Self::Package { .. } => KindName::Package,
            Self::Unpacked { .. } => KindName::Unpacked,
            Self::Module { .. } => KindName::Module,
            Self::Value { .. } => KindName::Value,
        }
    }
}

impl Repairs {
    /// Counts another repair. `None` once repairs are known not to help, until an undo, or until the path is
    /// in sync and stays so.
    pub(crate) fn one_more(self, now: u64) -> Option<Self> {
        if self.count >= REPAIRS {
            return None;
        }
        // Later than now: the clock was wrong when it was kept.
        let recent = if now.abs_diff(self.last) > REMEMBERED_S { 0 } else { self.count };
        Some(Self { count: recent + 1, last: now })
    }
}
