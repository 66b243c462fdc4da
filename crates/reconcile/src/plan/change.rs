use std::path::{Path, PathBuf};

use root::Attributes;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use super::named::named_in;
use crate::receipt::Entry;
use crate::receipt::Ours;
use crate::receipt::Repairs;
use crate::{Action, Check, Effect, Installer, Stage, State, Unpacked};

/// Longer texts are compared by nobody, and comparing them takes time.
const DIFF_LIMIT: usize = 256 << 10;

/// One change, as a plan lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// `owned`, `edited`, `node`, `package`, `unpacked` or `module`.
    pub kind: &'static str,
    pub path: PathBuf,
    pub change: Verb,
    pub reason: String,
    pub stage: Stage,
    /// What it makes necessary.
    pub effects: Vec<Effect>,
    /// What stands there now, and what will.
    pub from: State,
    pub to: State,
    /// The lines that change, where both are text.
    pub diff: Option<String>,
    #[serde(skip)]
    pub(crate) needs: Vec<PathBuf>,
    #[serde(skip)]
    pub(crate) target: Target,
    #[serde(skip)]
    pub(crate) after: After,
    /// Bytes that must be kept before anything is written.
    #[serde(skip)]
    pub(crate) keep: Option<Vec<u8>>,
}

/// What a change does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Nothing stands there.
    Create,
    /// Something else stands there: an earlier one of ours, or somebody's that is kept for undo.
    Replace,
    /// Our keys go into somebody's file.
    Edit,
    /// Ours was changed by somebody else.
    Repair,
    /// A node's group and mode.
    Permissions,
    /// Back to what was there before.
    Restore,
    /// There was nothing before.
    Remove,
}

/// How the path gets there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    File {
        bytes: Vec<u8>,
        mode: u32,
        owner: Option<(u32, u32)>,
    },
    Link {
        target: PathBuf,
    },
    Node {
        mode: u32,
        uid: Option<u32>,
        gid: u32,
    },
    Absent,
    Package(Doing),
    /// A file whose bytes are known once they were fetched.
    Fetched {
        url: String,
        check: Check,
        mode: u32,
        owner: (u32, u32),
    },
    Unpacked(Unpacked),
    /// A folder that was unpacked goes, with everything in it.
    UnpackedGone,
    /// To load a module of the kernel.
    Load {
        name: String,
    },
    /// To unload these, in this order: the first of them for sure, the others where nothing else needs them.
    Unload {
        names: Vec<String>,
    },
}

impl Target {
    /// Whether nothing stands there afterwards.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Absent | Self::UnpackedGone)
    }

    /// Whether the path is renamed over, or removed.
    pub(crate) fn is_replacement(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Link { .. } | Self::Absent | Self::UnpackedGone)
    }

    /// Whether it is done on the running machine only.
    pub(crate) fn needs_host(&self) -> bool {
        matches!(
            self,
            Self::Package(_)
                | Self::Fetched { .. }
                | Self::Unpacked(_)
                | Self::UnpackedGone
                | Self::Load { .. }
                | Self::Unload { .. }
        )
    }
}

/// What apt is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doing {
    /// To install a package and what it needs, or to go on with one that is there in part.
    Install { name: String, version: Option<String> },
    /// To install a package from a file, and to run the program that it brings.
    InstallBy { name: String, installer: Installer },
    /// To remove these and nothing else; of them `purge` with their configuration.
    /// `force`: what somebody has changed of them goes too.
    Remove { names: Vec<String>, purge: Vec<String>, force: bool },
}

/// What the receipt holds of the path afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum After {
    Held(Box<Entry>),
    Dropped,
}

impl Change {
    /// A change that brings an action about.
    pub(crate) fn forward(action: &Action, change: Verb, from: State, to: State, entry: Entry) -> Self {
        Self {
            kind: entry.ours.kind(),
            path: action.path.clone(),
            change,
            reason: action.reason.clone(),
            stage: action.stage,
            effects: action.effects.clone(),
            from,
            to,
            diff: None,
            needs: action.needs.clone(),
            target: Target::Absent,
            after: After::Held(Box::new(entry)),
            keep: None,
        }
    }

    /// A change that takes an entry back.
    pub(crate) fn back(entry: &Entry, change: Verb, from: State, target: Target) -> Self {
        let reason = match change {
            Verb::Edit => "our keys leave it",
            Verb::Remove => "it was not there before",
            _ => "back to what it was before",
        };
        Self {
            kind: entry.ours.kind(),
            path: entry.path.clone(),
            change,
            reason: reason.to_owned(),
            stage: entry.stage,
            effects: entry.effects.clone(),
            from,
            to: State::Absent,
            diff: None,
            needs: Vec::new(),
            target,
            after: After::Dropped,
            keep: None,
        }
    }

    /// Whether what stands at the path afterwards names this.
    #[must_use]
    pub fn leaves_named(&self, what: &Path) -> bool {
        let Target::File { bytes, .. } = &self.target else { return false };
        named_in(bytes, what)
    }

    /// The same as a repair of what somebody has changed.
    pub(crate) fn repaired(&mut self, repairs: Repairs) {
        if let After::Held(entry) = &mut self.after {
            entry.repairs = repairs;
        }
    }

    /// Changes what the receipt will hold of it.
    pub(crate) fn entry_mut(&mut self, change: impl FnOnce(&mut Ours)) {
        if let After::Held(entry) = &mut self.after {
            change(&mut entry.ours);
        }
    }

    /// The same with the bytes that were fetched for it.
    pub(crate) fn fetched(mut self, bytes: Vec<u8>, mode: u32, owner: (u32, u32)) -> Self {
        self.to = State::of_file(&bytes, Attributes { mode, owner: Some(owner) });
        self.target = Target::File { bytes, mode, owner: Some(owner) };
        if let After::Held(entry) = &mut self.after
            && let Ours::Owned { states } = &mut entry.ours
        {
            // In the place of what nobody knew yet.
            if let Some(newest) = states.first_mut() {
                newest.clone_from(&self.to);
            }
        }
        self
    }

    /// The same with its last words: how it is done, and what a person is shown of it.
    pub(crate) fn to(mut self, target: Target, to: State, diff: Option<String>) -> Self {
        (self.target, self.to, self.diff) = (target, to, diff);
        self
    }
}

/// The lines that change, as `diff -u` shows them without its header.
pub(crate) fn diff(old: &[u8], new: &[u8]) -> Option<String> {
    let (old, new) = (std::str::from_utf8(old).ok()?, std::str::from_utf8(new).ok()?);
    if old.len().max(new.len()) > DIFF_LIMIT {
        return None;
    }
    let diff = TextDiff::from_lines(old, new);
    Some(diff.unified_diff().context_radius(2).missing_newline_hint(false).to_string())
}
