//! Works out what has to change to reach the desired state, without changing anything.

mod rehearsal;
mod stays;
mod used;

use std::collections::BTreeSet;
use std::path::Path;

use root::Root;
use serde::Serialize;

pub use rehearsal::Rehearsal;
pub use stays::naming;
pub(crate) use stays::{Stays, read};

use crate::apt::dpkg;
use crate::kinds::{self, Observed, Planned, Unchanged};
use crate::model::{
    Action, Change, Desired, Doing, Entry, Finding, Found, Kind, KindName, Managed, Resource, Stage, State,
    Target,
};
use crate::receipt::Receipt;

/// The text about an edit that a killed run had moved out of its place.
const DISPLACED: &str = "an edit that a killed run had moved out of its place before the file was changed again: copy \
                         what is still wanted of it into the file, then remove this one";

/// The necessary changes, and those that are not possible.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Plan {
    /// The changes in the order in which they are made.
    pub changes: Vec<Change>,
    /// Managed paths that another program keeps writing, and that are repaired no more.
    pub contested: Vec<Finding>,
    /// Desired states that cannot be applied as the machine is.
    pub blocked: Vec<Finding>,
    /// Resources that would go and stay, because they have changed since the apply.
    pub left: Vec<Finding>,
    /// Files that were in sync before the first apply, or whose entry was lost with the receipt: undo leaves them.
    pub found: Vec<Resource>,
    /// Changes that rocworker only makes on the running machine, and not beneath a Root other than `/`:
    /// installing packages, fetching files.
    pub skipped: Vec<Finding>,
    /// Files that are replaced and that have other names beside this one, which keep the old file.
    #[serde(skip)]
    pub linked: Vec<Finding>,
    /// Entries that cannot be reverted as the machine is, which shows before it is tried: a disk that cannot be written, a
    /// file that is immutable or that a mount hides.
    #[serde(skip)]
    pub hindered: Vec<Finding>,
    /// Whether what has changed since the apply is reverted too.
    #[serde(skip)]
    pub(crate) forced: bool,
    /// Entries of which nothing is left on the machine: they leave the receipt.
    #[serde(skip)]
    pub(crate) gone: Vec<Resource>,
    /// New entries of resources that are in sync.
    #[serde(skip)]
    pub(crate) kept: Vec<Entry>,
}

impl Plan {
    /// Plans how `desired` becomes true. What the receipt holds and `desired` does not is reverted, in
    /// reverse order. `stage`: plans only what belongs to that stage. `force`: what has changed since the
    /// apply is reverted too. `now`: seconds since 1970. What cannot be read is a finding of the plan.
    #[must_use]
    pub fn make(
        root: &Root,
        desired: &Desired,
        receipt: &Receipt,
        stage: Option<Stage>,
        force: bool,
        now: u64,
    ) -> Self {
        let is_meant = |of: Stage| stage.is_none_or(|stage| stage == of);
        let meant = desired.actions.iter().filter(|action| is_meant(action.stage));
        let seen = Observed::new(root);
        let mut plan = Self { forced: force, ..Self::default() };
        plan.plan_actions(&seen, meant, receipt, now);
        for change in std::mem::take(&mut plan.changes) {
            let held = receipt.entry(&change.path);
            match held.and_then(|held| used::given_up(root, held, &change, &desired.undo_constraints)) {
                Some(text) => plan.blocked.push(Finding { path: change.path, text }),
                None => plan.changes.push(change),
            }
        }
        plan.plan_reverts(&seen, desired, receipt, &is_meant);
        // Only one of the two stages reports displaced edits, so that a run of both reports each once.
        if is_meant(Stage::Expose) {
            let there = receipt.displaced.iter().filter(|path| root.exists(path));
            plan.left.extend(there.map(|path| Finding { path: path.into(), text: DISPLACED.to_owned() }));
        }
        plan
    }

    fn plan_reverts(
        &mut self,
        seen: &Observed<'_>,
        desired: &Desired,
        receipt: &Receipt,
        is_meant: &dyn Fn(Stage) -> bool,
    ) {
        let (root, force) = (seen.root, self.forced);
        let is_named = |path: &Resource| desired.actions.iter().any(|action| action.path == *path);
        let mut stays = Stays::default();
        // The files of this plan count as they will be: see below.
        for path in desired.undo_constraints.namers.iter() {
            if receipt.entry(path).is_none() && !is_named(&path.into()) {
                stays.add(path, read(root, path));
            }
        }
        for unread in &desired.undo_constraints.unread {
            stays.add(unread.path.clone(), Err(unread.text.clone()));
        }
        let is_wanted = |entry: &Entry| {
            desired.is_undecided || is_named(&entry.path) || desired.undecided.contains(&entry.component)
        };
        let mut going = BTreeSet::new();
        for entry in receipt.entries.iter().rev().filter(|entry| is_meant(entry.stage) && !is_wanted(entry)) {
            let path = &entry.path;
            let planned = match kinds::observe(seen, path) {
                Ok(found) => {
                    let planned = kinds::revert(seen, entry, &found, &going, force);
                    let planned = self.unless_hidden(root, receipt, entry, &found, planned, &mut stays);
                    let planned = unless_used(root, desired, entry, planned, &mut stays);
                    let planned = self.once_replaced(desired, entry, planned);
                    stays.unless_named(root, entry, &found, planned)
                }
                // An unmanaged file is in the way of the path, and nothing shows that it will go.
                Err(error @ dpkg::Error::Root(root::Error::Folder { .. })) if force => {
                    if let Some(path) = path.path() {
                        stays.add(path, read(root, path));
                    }
                    Err(Unchanged::GoneBut(format!("{error}; rocworker no longer manages it")))
                }
                Err(error) => {
                    stays.add_listed(path, |path| read(root, path));
                    Err(Unchanged::Left(error.to_string()))
                }
            };
            if let Ok(change) = &planned {
                if let Target::Package(Doing::Remove { names, .. }) = &change.target {
                    going.extend(names.iter().cloned());
                }
                if change.target.is_replacement()
                    && let Some(Err(error)) = path.path().map(|path| root.check_replaceable(path))
                {
                    self.hindered.push(Finding { path: path.clone(), text: error.to_string() });
                }
            }
            self.add(root, path.clone(), planned);
        }
    }

    /// An entry leaves the receipt only when what was written there is seen: not when something else is on another file
    /// system that is mounted there by now. What the hidden file names is not known, so that nothing goes that it may name.
    fn unless_hidden(
        &mut self,
        root: &Root,
        receipt: &Receipt,
        entry: &Entry,
        found: &Found,
        planned: Planned,
        stays: &mut Stays,
    ) -> Planned {
        let is_seen = !matches!(planned, Err(Unchanged::Gone | Unchanged::GoneBut(_)))
            && is_managed(entry, &found.state());
        match receipt.hides(root, entry, "undo").filter(|_| !is_seen) {
            Some(text) if self.forced => {
                Err(Unchanged::GoneBut(format!("{text}; rocworker no longer manages it")))
            }
            Some(text) => {
                let text = format!("{text}; rocworker undo --force forgets it");
                stays.add_listed(&entry.path, |_| Err(text.clone()));
                self.hindered.push(Finding { path: entry.path.clone(), text: text.clone() });
                Err(Unchanged::Left(text))
            }
            None => planned,
        }
    }

    /// A file is reverted once every file that its component is to have is there: it may have moved.
    fn once_replaced(&self, desired: &Desired, entry: &Entry, planned: Planned) -> Planned {
        let mut change = planned?;
        let is_file = |kind| matches!(kind, KindName::Owned | KindName::Edited);
        let is_its = |it: &&Action| it.component == entry.component && it.stage == entry.stage;
        // An old path in the way of a new file goes first.
        let is_beneath = |it: &Action| {
            entry.path.path().zip(it.path.path()).is_some_and(|(old, new)| new.starts_with(old))
        };
        if is_file(change.kind) {
            let actions = desired.actions.iter().filter(is_its);
            let new = actions.filter(|it| is_file(it.kind.name()) && !is_beneath(it));
            change.needs = new.map(|it| it.path.clone()).collect();
        }
        match self.blocked.iter().find(|it| change.needs.contains(&it.path)) {
            Some(it) => Err(Unchanged::Left(unreplaced(&it.path))),
            None => Ok(change),
        }
    }

    /// Plans the changes for these actions.
    fn plan_actions<'a>(
        &mut self,
        seen: &Observed<'_>,
        actions: impl IntoIterator<Item = &'a Action>,
        receipt: &Receipt,
        now: u64,
    ) {
        let root = seen.root;
        let mut known = BTreeSet::new();
        for action in actions {
            if !known.insert(&action.path) {
                let text =
                    "two things are to be written there: give one of them another path in the configuration";
                self.blocked.push(Finding { path: action.path.clone(), text: text.to_owned() });
                continue;
            }
            let held = receipt.entry(&action.path);
            let mut planned = kinds::plan(seen, action, held, now);
            if let (Ok(change), Some(entry)) = (&planned, held)
                && !is_managed(entry, &change.from)
                && let Some(text) = receipt.hides(root, entry, "apply")
            {
                planned = Err(Unchanged::Blocked(text));
            }
            if matches!(planned, Err(Unchanged::InSync)) {
                match held {
                    Some(entry) => self.kept.extend(entry.as_of(action)),
                    // A node is the kernel's, whoever gave it its group.
                    None if matches!(action.kind, Kind::Node { .. }) => {}
                    None => self.found.push(action.path.clone()),
                }
            }
            let waits_for = self.skipped.iter().find(|skipped| action.needs.contains(&skipped.path));
            if let (Ok(_), Some(_)) = (&planned, waits_for) {
                self.skipped.push(Finding { path: action.path.clone(), text: NOT_FETCHED.to_owned() });
                continue;
            }
            self.add(root, action.path.clone(), planned);
        }
    }

    /// Whether there is nothing to do, neither on the machine nor in the receipt.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.gone.is_empty() && self.kept.is_empty()
    }

    fn add(&mut self, root: &Root, path: Resource, planned: Planned) {
        let (findings, text) = match planned {
            Ok(change) if change.target.needs_host() && !root.is_host() => {
                (&mut self.skipped, NOT_FETCHED.to_owned())
            }
            Ok(change) => {
                self.linked.extend(other_names(root, &change));
                return self.changes.push(change);
            }
            Err(Unchanged::InSync) => return,
            Err(Unchanged::Gone) => return self.gone.push(path),
            Err(Unchanged::Blocked(text)) => (&mut self.blocked, text),
            Err(Unchanged::Contested(text)) => (&mut self.contested, text),
            Err(Unchanged::Left(text)) => (&mut self.left, text),
            Err(Unchanged::GoneBut(text)) => {
                self.gone.push(path.clone());
                (&mut self.left, text)
            }
        };
        findings.push(Finding { path, text });
    }
}

/// Why a package does not come, nor what it is installed from.
const NOT_FETCHED: &str = "nothing is fetched or installed beneath another root than /";

/// Why a file is not reverted yet.
pub(crate) fn unreplaced(by: &Resource) -> String {
    format!("kept: its replacement {by} could not be written; see to that, then apply again")
}

/// Keeps a resource that an engine needs, or that a setting names. Not even `force` removes it: that is for
/// what has changed since the apply, and the engine needs its runtime all the same.
fn unless_used(
    root: &Root,
    desired: &Desired,
    entry: &Entry,
    planned: Planned,
    stays: &mut Stays,
) -> Planned {
    match planned {
        Ok(mut change) => {
            if let Some(text) = used::in_use(root, entry, &desired.undo_constraints) {
                return Err(Unchanged::Left(text));
            }
            change.effects = desired.undo_constraints.effects(&change.effects);
            Ok(change)
        }
        Err(Unchanged::Gone) => {
            let Some(text) = used::dangling(root, entry, &desired.undo_constraints) else {
                return Err(Unchanged::Gone);
            };
            // The program that the runtime had is what its owner needs to put it back.
            let managed = |_: &Path| serde_json::to_vec(&entry.managed).map_err(|error| error.to_string());
            stays.add_listed(&entry.path, managed);
            Err(Unchanged::Left(text))
        }
        planned => planned,
    }
}

/// Whether rocworker has put at the path what is there. For packages, nodes and folders the plan of the
/// change has already checked that.
fn is_managed(entry: &Entry, now: &State) -> bool {
    match &entry.managed {
        Managed::Owned { states } | Managed::Edited { states, .. } => states.contains(now),
        Managed::Node { .. } | Managed::Package { .. } | Managed::Module { .. } | Managed::Value { .. } => {
            true
        }
        Managed::Unpacked { .. } => *now != State::Absent,
    }
}

/// A file is put in place whole, by a name of its own: whoever shares it by a hard link has the old one from then on.
fn other_names(root: &Root, change: &Change) -> Option<Finding> {
    let is_replaced = matches!(change.from, State::File { .. }) && change.target.bytes().is_some();
    let others =
        root.hard_links(change.path.path()?).filter(|_| is_replaced)?.checked_sub(1).filter(|n| *n > 0)?;
    let text = format!(
        "it has {others} more {} by hard links, which will keep the old file, also after an undo: find them with find \
         -samefile",
        if others == 1 { "name" } else { "names" }
    );
    Some(Finding { path: change.path.clone(), text })
}
