//! What has to change for a machine to be as it should, worked out without changing anything.

mod change;
mod edited;
mod module;
mod named;
mod node;
mod owned;
mod package;
mod revert;
mod unpacked;
mod used;

use std::collections::BTreeSet;
use std::path::PathBuf;

use root::Root;
use serde::Serialize;

pub(crate) use change::{After, Doing, Target};
pub use change::{Change, Verb};
pub use named::naming;
pub(crate) use named::{Standing, read};
pub(crate) use package::revert as revert_package;
pub use used::Use;

use crate::observed::Observed;
use crate::receipt::{Entry, Ours, Repairs};
use crate::state::{Found, Unseen};
use crate::store::Store;
use crate::{Action, Desired, Error, Kind, Receipt, Stage, State};

/// After so many repairs of one path within [`FORGIVEN_S`], somebody else is taken to keep writing it.
const REPAIRS: u32 = 3;

/// Repairs longer ago than this, in seconds, say nothing any more: a day.
const FORGIVEN_S: u64 = 24 * 60 * 60;

/// Of an edit that a killed run had moved out of its place.
const DISPLACED: &str = "somebody's edit, which a run that was killed had moved out of its place before the file was \
                         changed again: copy what is still wanted of it into the file, then remove this one";

/// What has to change, and what cannot.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Plan {
    /// In the order in which they are made.
    pub changes: Vec<Change>,
    /// Paths of ours that somebody else keeps writing, and that are repaired no more.
    pub contested: Vec<Finding>,
    /// What should be and cannot be brought about as things stand.
    pub blocked: Vec<Finding>,
    /// What is ours no longer and stays, because somebody has changed it.
    pub left: Vec<Finding>,
    /// Files that are as they should be by somebody else's hand, or by ours where the receipt was lost: undo leaves them.
    pub found: Vec<PathBuf>,
    /// What is not done beneath another Root than `/`: packages come and go, and files are fetched, on the running
    /// machine only.
    pub skipped: Vec<Finding>,
    /// Files that are replaced and that have other names beside this one, which keep the old file.
    #[serde(skip)]
    pub linked: Vec<Finding>,
    /// Entries that cannot be taken back as things stand, which shows before it is tried: a disk that cannot be written, a
    /// file that is immutable.
    #[serde(skip)]
    pub hindered: Vec<Finding>,
    /// Whether what somebody has changed is taken back too.
    #[serde(skip)]
    pub(crate) forced: bool,
    /// Entries that have nothing on the machine any more: they leave the receipt.
    #[serde(skip)]
    pub(crate) gone: Vec<PathBuf>,
    /// Entries of what is as it should be, as they should be kept by now.
    #[serde(skip)]
    pub(crate) kept: Vec<Entry>,
}

/// Something about a path that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub path: PathBuf,
    pub text: String,
}

/// What one action comes to.
pub(crate) enum Verdict {
    Right,
    Change(Box<Change>),
    Contested(String),
    Left(String),
    /// Nothing of it is there any more.
    Gone,
    /// The same, and something of it is somebody else's by now.
    GoneBut(String),
}

impl Plan {
    /// What has to change for `desired` to be true. What the receipt holds and `desired` does not is taken back,
    /// in reverse. `stage`: only what belongs to that stage. `force`: what somebody has changed is taken back too.
    /// `now`: seconds since 1970.
    ///
    /// # Errors
    /// When the machine or what was kept of it cannot be read.
    pub fn make(
        root: &Root,
        desired: &Desired,
        receipt: &Receipt,
        stage: Option<Stage>,
        force: bool,
        now: u64,
    ) -> Result<Self, Error> {
        let store = Store::new(root);
        let is_meant = |of: Stage| stage.is_none_or(|stage| stage == of);
        let meant = desired.actions.iter().filter(|action| is_meant(action.stage));
        let seen = Observed::new(root);
        let mut plan = Self::seen(&seen, meant, receipt, now)?;
        plan.forced = force;
        for change in std::mem::take(&mut plan.changes) {
            match receipt
                .entry(&change.path)
                .and_then(|held| used::given_up(root, held, &change, &desired.way_back))
            {
                Some(text) => plan.add(change.path, Err(text)),
                None => plan.changes.push(change),
            }
        }
        let mut standing = Standing::default();
        // What stands in the files of this plan counts as it will be: see below.
        let is_planned = |path: &PathBuf| {
            receipt.entry(path).is_some() || desired.actions.iter().any(|action| action.path == *path)
        };
        for path in desired.way_back.namers.iter().filter(|path| !is_planned(path)) {
            standing.add(path, read(root, path));
        }
        for unread in &desired.way_back.unread {
            standing.add(&unread.path, Err(unread.text.clone()));
        }
        let mut going = BTreeSet::new();
        let is_wanted = |entry: &Entry| {
            desired.is_undecided
                || desired.actions.iter().any(|action| action.path == entry.path)
                || desired.undecided.contains(&entry.concern)
        };
        for entry in receipt.entries.iter().rev().filter(|entry| is_meant(entry.stage) && !is_wanted(entry)) {
            let verdict = match seen.look(&entry.path) {
                Ok(found) => {
                    // Force is for what somebody has changed: an engine needs its runtime all the same.
                    let used = used::standing(root, entry, &desired.way_back);
                    let verdict = revert::plan(&seen, &store, entry, &found, &going, force)?;
                    let verdict = unless_hidden(root, receipt, entry, verdict, force);
                    let verdict = match (verdict, used) {
                        (Verdict::Change(_), Some(text)) => Verdict::Left(text),
                        (Verdict::Change(mut change), None) => {
                            change.effects = desired.way_back.effects(&change.effects);
                            Verdict::Change(change)
                        }
                        (Verdict::Gone, _)
                            if let Some(text) = used::dangling(root, entry, &desired.way_back) =>
                        {
                            // The program that the runtime had is what its owner needs to put it back.
                            let ours = serde_json::to_vec(&entry.ours).map_err(|error| error.to_string());
                            standing.add_listed(&entry.path, ours);
                            Verdict::Left(text)
                        }
                        (verdict, _) => verdict,
                    };
                    standing.unless_named(root, &entry.path, &found, verdict)
                }
                // What stands in the way of it is nobody's of ours, and nothing says that it will go.
                Err(error @ Unseen::Root(root::Error::Folder { .. })) if force => {
                    standing.add(&entry.path, read(root, &entry.path));
                    Verdict::GoneBut(format!("{error}; rocworker no longer manages it"))
                }
                Err(error) => {
                    standing.add_listed(&entry.path, read(root, &entry.path));
                    Verdict::Left(error.to_string())
                }
            };
            if let Verdict::Change(change) = &verdict
                && let Target::Package(Doing::Remove { names, .. }) = &change.target
            {
                going.extend(names.iter().cloned());
            }
            if let Verdict::Change(change) = &verdict
                && change.target.is_replacement()
                && let Err(error) = root.check_replaceable(&entry.path)
            {
                plan.hindered.push(Finding { path: entry.path.clone(), text: error.to_string() });
            }
            plan.add_on(root, entry.path.clone(), Ok(verdict));
        }
        // With one stage of the two: a run that makes both names it once.
        if is_meant(Stage::Expose) {
            let there = receipt.displaced.iter().filter(|path| root.exists(path));
            plan.left.extend(there.map(|path| Finding { path: path.clone(), text: DISPLACED.to_owned() }));
        }
        Ok(plan)
    }

    /// What has to change for these actions alone: nothing is taken back.
    ///
    /// # Errors
    /// As [`Plan::make`].
    pub fn of<'a>(
        root: &Root,
        actions: impl IntoIterator<Item = &'a Action>,
        receipt: &Receipt,
        now: u64,
    ) -> Result<Self, Error> {
        Self::seen(&Observed::new(root), actions, receipt, now)
    }

    fn seen<'a>(
        seen: &Observed<'_>,
        actions: impl IntoIterator<Item = &'a Action>,
        receipt: &Receipt,
        now: u64,
    ) -> Result<Self, Error> {
        let root = seen.root;
        let mut plan = Self::default();
        let mut known = BTreeSet::new();
        for action in actions {
            if !known.insert(&action.path) {
                let text =
                    "two things are to be written there: give one of them another path in the configuration";
                plan.add(action.path.clone(), Err(text.to_owned()));
                continue;
            }
            let held = receipt.entry(&action.path);
            let verdict = wanted(seen, &Store::new(root), action, held, now)?;
            let verdict = match (verdict, held) {
                (Ok(Verdict::Change(change)), Some(entry)) if !is_ours(entry, &change) => {
                    receipt.hides(root, entry, "apply").map_or(Ok(Verdict::Change(change)), Err)
                }
                (verdict, _) => verdict,
            };
            // A node is the kernel's, whoever gave it its group.
            let is_file = !matches!(action.kind, Kind::Node { .. });
            match (&verdict, held) {
                (Ok(Verdict::Right), Some(entry)) => plan.kept.extend(entry.as_of(action)),
                (Ok(Verdict::Right), None) if is_file => plan.found.push(action.path.clone()),
                _ => {}
            }
            plan.add_on(root, action.path.clone(), verdict);
        }
        Ok(plan)
    }

    /// Whether there is nothing to do: neither on the machine nor in the receipt.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.gone.is_empty() && self.kept.is_empty()
    }

    fn add_on(&mut self, root: &Root, path: PathBuf, verdict: Result<Verdict, String>) {
        match verdict {
            Ok(Verdict::Change(change)) if change.target.needs_host() && !root.is_host() => {
                let text = format!(
                    "{} → {}: nothing is fetched or installed beneath another root than /",
                    change.from, change.to
                );
                self.skipped.push(Finding { path, text });
            }
            verdict => {
                if let Ok(Verdict::Change(change)) = &verdict {
                    self.linked.extend(other_names(root, change));
                }
                self.add(path, verdict);
            }
        }
    }

    fn add(&mut self, path: PathBuf, verdict: Result<Verdict, String>) {
        match verdict {
            Ok(Verdict::Right) => {}
            Ok(Verdict::Change(change)) => self.changes.push(*change),
            Ok(Verdict::Contested(text)) => self.contested.push(Finding { path, text }),
            Ok(Verdict::Left(text)) => self.left.push(Finding { path, text }),
            Ok(Verdict::Gone) => self.gone.push(path),
            Ok(Verdict::GoneBut(text)) => {
                self.gone.push(path.clone());
                self.left.push(Finding { path, text });
            }
            Err(text) => self.blocked.push(Finding { path, text }),
        }
    }
}

/// An entry leaves the receipt only when what was written there is seen: not when something else stands on another file
/// system that is mounted there by now.
fn unless_hidden(root: &Root, receipt: &Receipt, entry: &Entry, verdict: Verdict, force: bool) -> Verdict {
    let is_seen = match &verdict {
        Verdict::Change(change) => is_ours(entry, change),
        Verdict::Gone | Verdict::GoneBut(_) => false,
        Verdict::Right | Verdict::Contested(_) | Verdict::Left(_) => true,
    };
    match receipt.hides(root, entry, "undo").filter(|_| !is_seen) {
        Some(text) if force => Verdict::GoneBut(format!("{text}; rocworker no longer manages it")),
        Some(text) => Verdict::Left(format!("{text}; rocworker undo --force forgets it")),
        None => verdict,
    }
}

/// Whether what stands at a path is what rocworker has put there. Of packages, nodes and folders, whoever made the change
/// has looked.
fn is_ours(entry: &Entry, change: &Change) -> bool {
    match &entry.ours {
        Ours::Owned { states } | Ours::Edited { states, .. } => states.contains(&change.from),
        Ours::Node { .. } | Ours::Package { .. } | Ours::Module { .. } => true,
        Ours::Unpacked { .. } => change.from != State::Absent,
    }
}

/// A file is put in place whole, by a name of its own: whoever shares it by a hard link has the old one from then on.
fn other_names(root: &Root, change: &Change) -> Option<Finding> {
    let is_replaced = matches!((&change.from, &change.target), (State::File { .. }, Target::File { .. }));
    let others = root.hard_links(&change.path).filter(|_| is_replaced)?.checked_sub(1).filter(|n| *n > 0)?;
    let text = format!(
        "it has {others} more {} by hard links, and what stands there keeps the old file: find them with find -samefile",
        if others == 1 { "name" } else { "names" }
    );
    Some(Finding { path: change.path.clone(), text })
}

/// The outer error ends the plan; the inner one keeps this action alone from being brought about.
fn wanted(
    seen: &Observed<'_>,
    store: &Store<'_>,
    action: &Action,
    held: Option<&Entry>,
    now: u64,
) -> Result<Result<Verdict, String>, Error> {
    let root = seen.root;
    let found = match seen.look(&action.path) {
        Ok(found) => found,
        Err(error) => return Ok(Err(error.to_string())),
    };
    if let Some(entry) = held.filter(|entry| entry.ours.kind() != action.kind.name()) {
        return Ok(Err(format!(
            "it is ours as {} by an earlier configuration, and would be {} now: rocworker undo, then apply again",
            entry.ours.kind(),
            action.kind.name()
        )));
    }
    match &action.kind {
        Kind::Owned(content) => Ok(owned::plan(root, action, content, &found, held, now)),
        Kind::Edited(edit) => edited::plan(store, action, edit, &found, held, now),
        // An archive's record of a node is nobody's to change.
        Kind::Node { .. } if root.is_recorded(&action.path) => Ok(Ok(Verdict::Right)),
        Kind::Package(wanted) => Ok(package::plan(seen, action, wanted, &found, held, now)),
        Kind::Unpacked(wanted) => Ok(unpacked::plan(root, action, wanted, &found, held, now)),
        Kind::Module(module) => Ok(module::plan(root, action, module, &found, held, now)),
        Kind::Node { mode, gid } => Ok(node::plan(action, *mode, *gid, &found, held)),
    }
}

impl Repairs {
    /// One more, unless it is known by now that repairing does not help: then until somebody undoes it, or the path is
    /// as it should be and stays so.
    fn one_more(self, now: u64) -> Option<Self> {
        if self.count >= REPAIRS {
            return None;
        }
        // Later than now: the clock was wrong when it was kept.
        let recent = if now.abs_diff(self.last) > FORGIVEN_S { 0 } else { self.count };
        Some(Self { count: recent + 1, last: now })
    }
}

/// Who contests a path, as far as that can be told.
fn contested(action: &Action, repairs: Repairs, found: &Found) -> Verdict {
    let who = action.rival.as_deref().unwrap_or("something else");
    let state = found.state();
    Verdict::Contested(format!(
        "{who} keeps writing it: repaired {} times, and now it is {state} again; it is repaired no more: make {who} stop, \
         then rocworker undo and apply; or leave the path to it in the configuration",
        repairs.count
    ))
}
