//! What was done and what was there before: enough to take all of it back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use root::Root;
use serde::{Deserialize, Serialize};

use crate::history::Event;
use crate::replacing::Replacing;
use crate::uptime::Uptime;
use crate::{Action, Came, Digest, Edit, Effect, Kind, Restarts, Stage, State, Use, dpkg, module, package};

/// The version that is written. The one before it is read too, once there is one.
pub(crate) const VERSION: u32 = 1;

/// Everything that is ours on a machine, in the order in which it came there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub schema_version: u32,
    pub entries: Vec<Entry>,
    /// Folders that were made on the way: they go when they are empty.
    pub folders: Vec<PathBuf>,
    /// What a change has made necessary and nobody has done yet.
    pub pending: Vec<Pending>,
    /// The path that a run was about to write when this was kept. What it left is taken away by the next run: a run
    /// that ends by itself leaves none here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writing: Option<PathBuf>,
    /// What that run was about to replace there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacing: Option<Replacing>,
    /// Edits of somebody's that a killed run had moved out of their place, and that could not go back there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub displaced: BTreeSet<PathBuf>,
    /// Where file systems were mounted when something was written beneath them, of entries that do not say so themselves:
    /// an earlier version kept them here.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub mounts: BTreeSet<PathBuf>,
    /// By which rule units were restarted for the last apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restarts>,
    /// Runs that the history lacks: those that were killed, behind them the one that is at work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<Event>,
}

/// One path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub path: PathBuf,
    pub stage: Stage,
    pub reason: String,
    /// What stood there before the first of our changes; for an edited file, what it would be now without our keys.
    pub before: State,
    #[serde(flatten)]
    pub ours: Ours,
    /// What taking it back makes necessary.
    pub effects: Vec<Effect>,
    #[serde(default)]
    pub concern: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<Use>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rival: Option<String>,
    #[serde(default)]
    pub repairs: Repairs,
    /// Where the file system was mounted on which it was written; `/` is the machine's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<PathBuf>,
}

/// What of it is ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Ours {
    /// What stands there by our hand: the newest first, behind it the one before, for a run that was killed between
    /// the two.
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
        /// Mode and group that we gave it before these, for a run that was killed between the two.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        older: Option<(u32, u32)>,
    },
    Package {
        /// What was not there before and came with it, the package itself among them. Empty where it was taken away.
        came: Vec<Came>,
        /// A run has begun with it, and has not told yet that it came to its end.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        begun: bool,
    },
    /// A folder that an archive has become.
    Unpacked {
        /// The archive's; what came of it stands in the manifest of this name.
        sha256: Digest,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        begun: bool,
    },
    /// A module of the kernel that was not loaded.
    Module {
        /// The boot in which it was loaded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot: Option<String>,
        /// What was loaded with it, in that order, itself among them.
        came: Vec<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        begun: bool,
    },
}

/// How often ours was found changed and was put right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repairs {
    pub count: u32,
    /// Seconds since 1970.
    pub last: u64,
}

/// An effect that is still to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    #[serde(flatten)]
    pub effect: Effect,
    /// Seconds since 1970.
    pub since: u64,
    /// The same moment as no setting of the clock moves it; `None` where nothing is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime: Option<Uptime>,
    /// The unit was told to end once its work is done; then it is to be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
}

/// Which run of a unit was told to end once its work is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// systemd's InvocationID; empty where it tells none.
    pub invocation: String,
    /// Whether the signal was sent for sure: it is kept before and after.
    pub sent: bool,
}

impl Default for Receipt {
    fn default() -> Self {
        Self {
            schema_version: VERSION,
            entries: Vec::new(),
            folders: Vec::new(),
            pending: Vec::new(),
            writing: None,
            replacing: None,
            displaced: BTreeSet::new(),
            mounts: BTreeSet::new(),
            restart: None,
            unrecorded: Vec::new(),
        }
    }
}

impl Receipt {
    #[must_use]
    pub fn entry(&self, path: &Path) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.path == path)
    }

    /// Whether there is nothing to take back and nothing left to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { entries, folders, pending, writing, unrecorded, .. } = self;
        let is_told = writing.is_none() && unrecorded.is_empty();
        entries.is_empty() && folders.is_empty() && pending.is_empty() && is_told
    }

    /// Why what stands at an entry's path is not what was written there: it was written to another file system than the
    /// one that is mounted there now. `again`: the command that is to be run again.
    pub(crate) fn hides(&self, root: &Root, entry: &Entry, again: &str) -> Option<String> {
        let now = root.mount_of(place(&entry.path)?);
        let shown = |mount: &Path| root.shown(mount).display().to_string();
        match &entry.mount {
            Some(then) if *then == now => None,
            Some(then) if then.starts_with(&now) => Some(format!(
                "it was written to the file system that was mounted at {}, and nothing is mounted there now: mount it, then \
                 {again} again",
                shown(then)
            )),
            // Of packages it was not kept.
            None if !entry.path.is_absolute() || now == Path::new("/") || self.mounts.contains(&now) => None,
            _ => Some(format!(
                "A file system mounted at {0} since the last apply hides this file: umount {0}, then {again} again",
                shown(&now)
            )),
        }
    }

    /// What is still owed on this machine as it runs now: a restart of the machine that has come since is none, though
    /// only the next run takes note of it.
    pub fn owed(&self, root: &Root) -> impl Iterator<Item = &Pending> {
        let now = Uptime::now(root);
        let is_over = move |pending: &Pending| match (&pending.effect, &pending.uptime, &now) {
            (Effect::Reboot { .. }, Some(then), Some(now)) => then.boot != now.boot,
            _ => false,
        };
        self.pending.iter().filter(move |pending| !is_over(pending))
    }

    /// Whether a run was killed in the middle, or has left something to be done.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.writing.is_some() || !self.pending.is_empty() || !self.unrecorded.is_empty()
    }

    /// Of a path that a killed run was writing: whether it has come to it tells what stands there.
    pub(crate) fn settle_on(&mut self, path: &Path, state: &State) {
        if self.entry(path).is_some_and(|entry| entry.ours.states().first() == Some(state)) {
            self.forget_older(path);
        }
    }

    /// What stands at a path is the newest state of ours: the one before it is ours no longer, and counts as
    /// somebody's doing when it comes back.
    pub(crate) fn forget_older(&mut self, path: &Path) {
        let entry = self.entries.iter_mut().find(|entry| entry.path == path);
        match entry.map(|entry| &mut entry.ours) {
            Some(Ours::Owned { states } | Ours::Edited { states, .. }) => states.truncate(1),
            Some(Ours::Node { older, .. }) => *older = None,
            Some(Ours::Package { begun, .. } | Ours::Unpacked { begun, .. } | Ours::Module { begun, .. }) => {
                *begun = false;
            }
            None => {}
        }
    }

    /// The same, as if a path had never been repaired: somebody asks for it by name.
    #[must_use]
    pub fn forgiving(mut self, path: &Path) -> Self {
        for entry in self.entries.iter_mut().filter(|entry| entry.path == path) {
            entry.repairs = Repairs::default();
        }
        self
    }

    pub(crate) fn put(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|known| known.path == entry.path) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
    }

    pub(crate) fn drop_entry(&mut self, path: &Path) {
        self.entries.retain(|entry| entry.path != path);
    }

    pub(crate) fn add_folders(&mut self, folders: Vec<PathBuf>) {
        for folder in folders {
            if !self.folders.contains(&folder) {
                self.folders.push(folder);
            }
        }
    }

    /// Remembers effects until they are done. `now`: when what they follow was or will be written, in seconds since
    /// 1970, `uptime` the same.
    pub(crate) fn owe(&mut self, effects: &[Effect], now: u64, uptime: Option<&Uptime>) {
        for effect in effects {
            match self.pending.iter_mut().find(|pending| pending.effect == *effect) {
                Some(pending) => (pending.since, pending.uptime) = (now, uptime.cloned()),
                None => {
                    let (effect, uptime) = (effect.clone(), uptime.cloned());
                    self.pending.push(Pending { effect, since: now, uptime, told: None });
                }
            }
        }
        self.pending.sort_by(|a, b| a.effect.cmp(&b.effect));
    }
}

/// The file in which it stands what an entry's path names; `None` of what is in the kernel alone.
pub(crate) fn place(path: &Path) -> Option<&Path> {
    if module::named(path).is_some() {
        return None;
    }
    Some(package::named(path).map_or(path, |_| Path::new(dpkg::STATUS)))
}

impl Entry {
    /// The same as its action has it by now, beside what stands there: what its way back needs changes with the
    /// machine. `None` where it says so already.
    pub(crate) fn as_of(&self, action: &Action) -> Option<Self> {
        let entry = Self {
            reason: action.reason.clone(),
            effects: self.effects_by(action),
            concern: action.concern.clone(),
            uses: action.uses.clone(),
            rival: action.rival.clone(),
            ..self.clone()
        };
        (entry != *self).then_some(entry)
    }

    /// With what an installer brought, which only the machine tells.
    fn effects_by(&self, action: &Action) -> Vec<Effect> {
        match &action.kind {
            Kind::Package(package) if package.installer.is_some() => self.effects.clone(),
            _ => action.effects_back().to_vec(),
        }
    }

    /// What is ours of an action.
    pub(crate) fn of(action: &Action, before: State, ours: Ours, repairs: Repairs) -> Self {
        Self {
            path: action.path.clone(),
            stage: action.stage,
            reason: action.reason.clone(),
            before,
            ours,
            effects: action.effects_back().to_vec(),
            concern: action.concern.clone(),
            uses: action.uses.clone(),
            rival: action.rival.clone(),
            repairs,
            mount: None,
        }
    }
}

impl Ours {
    /// Whether a run has begun with it, and has not told yet that it came to its end.
    pub(crate) fn is_begun(&self) -> bool {
        match self {
            Self::Package { begun, .. } | Self::Unpacked { begun, .. } | Self::Module { begun, .. } => *begun,
            Self::Owned { .. } | Self::Edited { .. } | Self::Node { .. } => false,
        }
    }

    /// What stands at the path by our hand, as far as it is a file or link.
    pub(crate) fn states(&self) -> &[State] {
        match self {
            Self::Owned { states } | Self::Edited { states, .. } => states,
            Self::Node { .. } | Self::Package { .. } | Self::Unpacked { .. } | Self::Module { .. } => &[],
        }
    }

    /// As JSON and people name it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Owned { .. } => "owned",
            Self::Edited { .. } => "edited",
            Self::Node { .. } => "node",
            Self::Package { .. } => "package",
            Self::Unpacked { .. } => "unpacked",
            Self::Module { .. } => "module",
        }
    }
}
