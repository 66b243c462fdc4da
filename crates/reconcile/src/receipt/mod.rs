//! The receipt: what was done and what was there before, so that all of it can be undone.

mod document;
pub mod history;
mod journal;
mod store;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use root::Root;
use serde::{Deserialize, Serialize};

use crate::apt::dpkg;
use crate::model::{Effect, Entry, Repairs, Resource, Restarts, State, Uptime};

pub(crate) use document::{read_document, sweep_folder};
use history::Event;
pub(crate) use journal::{Failure, Journal};
pub use store::{FOLDER, FORMATS, Store};

/// The version that is written. The one before it is read too, once there is one.
pub(crate) const VERSION: u32 = 1;

/// Everything that rocworker manages on a machine, in the order in which it came there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub schema_version: u32,
    pub entries: Vec<Entry>,
    /// Folders that were made on the way: they go when they are empty.
    pub folders: Vec<PathBuf>,
    /// Effects of changes that no run has completed yet.
    pub pending: Vec<Pending>,
    /// The path that a run was about to write when the receipt was saved. The next run removes what that run
    /// left; a run that ends by itself leaves no path here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writing: Option<Resource>,
    /// What that run was about to replace at the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacing: Option<Replacing>,
    /// Edits of other programs that a killed run had moved out of their place, and that could not go back there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub displaced: BTreeSet<PathBuf>,
    /// Mount points of file systems on which something was written, for entries that do not have their own:
    /// an earlier version kept them here.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub mounts: BTreeSet<PathBuf>,
    /// The rule by which the last apply restarted units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restarts>,
    /// Runs that the history lacks: those that were killed, behind them the one that is at work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<Event>,
}

/// The states before and after a replacement that a run was about to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacing {
    pub from: State,
    pub to: State,
}

/// An effect that no run has executed yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    #[serde(flatten)]
    pub effect: Effect,
    /// Seconds since 1970.
    pub since: u64,
    /// The uptime at `since`, because a set clock moves `since`; `None` where nothing is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime: Option<Uptime>,
    /// The unit got a signal to end once its work is done; then it is to be started.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "told")]
    pub draining: Option<Draining>,
}

/// The run of a unit that got a signal to end once its work is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draining {
    /// systemd's InvocationID; empty where systemd reports none.
    pub invocation: String,
    /// Whether the signal was certainly sent: the run saves the receipt before and after.
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
    /// The entry of a resource, or of a path.
    #[must_use]
    pub fn entry<K: ?Sized>(&self, of: &K) -> Option<&Entry>
    where
        Resource: PartialEq<K>,
    {
        self.entries.iter().find(|entry| entry.path == *of)
    }

    pub(crate) fn entry_mut(&mut self, of: &Resource) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.path == *of)
    }

    /// Whether there is nothing to undo and nothing pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { entries, folders, pending, writing, unrecorded, .. } = self;
        let is_recorded = writing.is_none() && unrecorded.is_empty();
        entries.is_empty() && folders.is_empty() && pending.is_empty() && is_recorded
    }

    /// Why what is at an entry's path is not what was written there: it was written to another file system than the
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
            // Entries of packages have no mount.
            None if entry.path.is_package() || now == Path::new("/") || self.mounts.contains(&now) => None,
            _ => Some(format!(
                "A file system mounted at {0} since the last apply hides this file: umount {0}, then {again} again",
                shown(&now)
            )),
        }
    }

    /// Whether this file system was mounted there already when rocworker wrote what is beneath it.
    #[must_use]
    pub fn saw_mounted(&self, mount: &Path) -> bool {
        let is_beneath = |entry: &&Entry| entry.path.path().is_some_and(|path| path.starts_with(mount));
        let mut beneath = self.entries.iter().filter(is_beneath).peekable();
        beneath.peek().is_some()
            && beneath.all(|entry| match &entry.mount {
                Some(then) => then.starts_with(mount),
                None => self.mounts.contains(mount),
            })
    }

    /// The effects that are still pending. A reboot that has happened since does not count, though only the
    /// next run records it.
    pub fn still_pending(&self, root: &Root) -> impl Iterator<Item = &Pending> {
        let now = Uptime::now(root);
        let is_over = move |pending: &Pending| match (&pending.effect, &pending.uptime, &now) {
            (Effect::Reboot { .. }, Some(then), Some(now)) => then.boot != now.boot,
            _ => false,
        };
        self.pending.iter().filter(move |pending| !is_over(pending))
    }

    /// Whether a run was killed in the middle, or has left effects pending.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.writing.is_some() || !self.pending.is_empty() || !self.unrecorded.is_empty()
    }

    /// The receipt without the repairs that it has counted of a path, because a person names that path.
    #[must_use]
    pub fn without_repairs_of(mut self, path: &Resource) -> Self {
        if let Some(entry) = self.entry_mut(path) {
            entry.repairs = Repairs::default();
        }
        self
    }

    pub(crate) fn put(&mut self, entry: Entry) {
        match self.entry_mut(&entry.path) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
    }

    pub(crate) fn add_folders(&mut self, folders: Vec<PathBuf>) {
        let new: Vec<_> = folders.into_iter().filter(|folder| !self.folders.contains(folder)).collect();
        self.folders.extend(new);
    }

    pub(crate) fn pending_mut(&mut self, effect: &Effect) -> Option<&mut Pending> {
        self.pending.iter_mut().find(|pending| pending.effect == *effect)
    }

    /// Adds effects, which stay pending until a run carries them out. `now`: when rocworker writes the change that they
    /// follow, in seconds since 1970.
    pub(crate) fn add_pending(&mut self, effects: &[Effect], root: &Root, now: u64) {
        let uptime = Uptime::now(root);
        for effect in effects {
            self.pending.retain(|pending| !effect.replaces(&pending.effect));
            match self.pending_mut(effect) {
                Some(pending) => (pending.since, pending.uptime) = (now, uptime.clone()),
                None => {
                    let (effect, uptime) = (effect.clone(), uptime.clone());
                    self.pending.push(Pending { effect, since: now, uptime, draining: None });
                }
            }
        }
        self.pending.sort_by(|a, b| a.effect.cmp(&b.effect));
    }
}

/// The file in which a resource is; `None` of what is in the kernel alone.
pub(crate) fn place(resource: &Resource) -> Option<&Path> {
    match resource {
        Resource::Path(path) => Some(path),
        Resource::Package(_) => Some(Path::new(dpkg::STATUS)),
        Resource::Module(_) => None,
    }
}
