//! A run that changes the machine: the receipt first, then the machine, one path at a time. This is what it writes, in
//! this order, and what is left on disk where it is killed. The next run repairs that in [`Transaction::begin`].
//!
//! Each file is written whole: a temporary file beside it, fsync, rename, fsync of the folder. The files of steps 1, 2,
//! 3 and 8 are in /var/lib/rocworker.
//!
//! 1. `lock`, which the kernel releases when the process ends.
//! 2. `before/SHA256`: the bytes that a change replaces. Killed here: no entry names them, and the next run that changes
//!    something removes them.
//! 3. `receipt.json`: the state before, the new state in front of the last one, the effects that now pend, the path
//!    (`writing`, `replacing`), and the run's event (`unrecorded`). Killed here: the path is old, and the next run plans
//!    the change again.
//! 4. The path: the old and the new file change places, then the old one goes. Killed here: the path is old or new, and
//!    a temporary file may be beside it. The next run removes that file. If it holds an edit that came in the same
//!    moment, the next run puts the edit back. If the path changed since, it keeps the edit beside the path and names it.
//! 5. Steps 2 to 4 for the next change. Its receipt no longer names the last change's older state. Killed before that:
//!    the receipt names both states, and the next run looks which of them is there.
//! 6. Empty folders go, `receipt.json` no longer names a path that is being written, and bytes that no entry names go.
//! 7. Each effect, then `receipt.json` without it. Killed here: the next run runs what still pends, so that an effect may
//!    run twice and is never lost.
//! 8. `history.json`, then `receipt.json` without `unrecorded`. Killed between them: the next run finds its event there
//!    and does not add it again.
//!
//! Packages, modules and archives have no bytes to keep. Step 3 marks their entries as `begun` and lists what is about to
//! come; the next run asks dpkg or the kernel how far that came, and finishes it. An archive is unpacked beside its
//! folder and renamed in one step. An undo takes the same steps; an entry leaves the receipt once its path is restored.

mod effects;

use std::path::Path;

use root::{Lock, Root};

use crate::apt::PackageManager;
use crate::effects::unrecord;
use crate::error::Error;
use crate::kinds;
use crate::model::{Change, Effect, Finding, ModuleBuild, Progress, Resource, Restarts, Settled, Uptime};
use crate::plan::{Plan, Stays, read, unreplaced};
use crate::receipt::history::{self, Changed, Event};
use crate::receipt::{Failure, Journal, Pending, Receipt, Store};

/// The machine beneath a Root, with every other apply and undo kept out.
#[derive(Debug)]
pub struct Transaction<'a> {
    journal: Journal<'a>,
    _lock: Lock,
}

/// The result of a plan's execution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Executed {
    /// The changes that were made, by their place in the plan.
    pub done: Vec<Resource>,
    /// Changes that failed, and why: all others were made.
    pub failed: Vec<Finding>,
    /// Effects that had to run before the end: apt reads what a repository offers before its first package.
    pub effects: Vec<Settled>,
}

impl<'a> Transaction<'a> {
    /// Takes the lock, reads the receipt, and repairs what a killed run left. `on_progress` is called when another run has
    /// to end first.
    ///
    /// # Errors
    /// When another run holds the lock for a minute, or the receipt cannot be read or believed.
    pub fn begin(root: &'a Root, on_progress: &mut dyn FnMut(Progress<'_>)) -> Result<Self, Error> {
        let store = Store::new(root);
        let lock = store.lock(on_progress)?;
        let mut receipt = store.receipt()?;
        let killed_at = receipt.writing.take();
        if let Some(path) = &killed_at {
            kinds::recover(root, &mut receipt, path)?;
        }
        receipt.replacing = None;
        store.sweep_own();
        let displaced = receipt.displaced.len();
        receipt.displaced.retain(|path| root.exists(path));
        let unsaved = killed_at.is_some() || receipt.displaced.len() != displaced;
        let mut journal = Journal::new(root, store, receipt);
        journal.unsaved = unsaved;
        Ok(Self { journal, _lock: lock })
    }

    /// Gives the transaction a package manager.
    #[must_use]
    pub fn by(mut self, manager: Option<PackageManager>) -> Self {
        self.journal.manager = manager;
        self
    }

    /// Has the history record this transaction. `event` names the command and who runs it; its `changed` is ignored.
    #[must_use]
    pub fn recorded(mut self, event: Event) -> Self {
        for killed in &mut self.journal.receipt.unrecorded {
            killed.killed = true;
        }
        self.journal.run = Some((event, self.journal.receipt.unrecorded.len()));
        self
    }

    /// Writes into the history what this run has changed, and what earlier ones have that were killed.
    ///
    /// # Errors
    /// When the history or the receipt cannot be written; the next run tries it again.
    pub fn record(&mut self) -> Result<(), Error> {
        // A change that this run began and could not make is not one of its changes.
        self.journal.note_run(None);
        if self.journal.receipt.unrecorded.is_empty() {
            return Ok(());
        }
        history::add(self.journal.root, &self.journal.receipt.unrecorded)?;
        self.journal.receipt_mut().unrecorded.clear();
        self.journal.save()
    }

    /// Keeps by which rule units are restarted, for an undo without one.
    pub fn restart_by(&mut self, restarts: Restarts) {
        if self.journal.receipt.restart != Some(restarts) {
            self.journal.receipt_mut().restart = Some(restarts);
        }
    }

    /// The changes that were made so far, also by a run that failed.
    #[must_use]
    pub fn made(&self) -> &[Changed] {
        &self.journal.made
    }

    #[must_use]
    pub fn receipt(&self) -> &Receipt {
        &self.journal.receipt
    }

    /// Makes the changes of a plan, each only if its path still holds what the plan saw there.
    ///
    /// # Errors
    /// When the receipt cannot be kept: nothing is changed that could not be undone.
    pub fn execute(
        &mut self,
        plan: &Plan,
        now: u64,
        on_progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Executed, Error> {
        let root = self.journal.root;
        let mut carried = Executed::default();
        let ran_before = self.journal.settled.len();
        for path in &plan.gone {
            carried.failed.extend(self.let_go(plan, path));
        }
        for entry in &plan.kept {
            self.journal.receipt_mut().put(entry.clone());
        }
        self.journal.packages = plan.changes.iter().flat_map(Change::apt_arguments).collect();
        self.journal.simulated.clear();
        let mut stays = Stays::default();
        for change in &plan.changes {
            let held = change.path.path().filter(|_| change.target.is_gone()).and_then(|it| stays.hold(it));
            let made = match held.or_else(|| unmet(root, plan, &carried, change)) {
                Some(text) => Err(Failure::Change(text)),
                None => {
                    on_progress(Progress::Begins(change));
                    let hear = &mut |step| on_progress(Progress::Comes(change, step));
                    kinds::apply(&mut self.journal, change, now, hear)
                }
            };
            match made {
                Ok(()) => {
                    self.journal.made.push(Changed { path: change.path.clone(), change: change.change });
                    carried.done.push(change.path.clone());
                    on_progress(Progress::Made(change));
                }
                Err(Failure::Receipt(error)) => return Err(error),
                Err(Failure::Change(text)) => {
                    stays.add_listed(&change.path, |path| read(root, path));
                    carried.failed.push(Finding { path: change.path.clone(), text });
                }
            }
        }
        carried.failed.extend(self.remove_folders());
        self.journal.unsaved |= self.journal.receipt.writing.take().is_some();
        self.journal.receipt.replacing = None;
        self.journal.note_run(None);
        self.journal.save()?;
        // An undo that was killed as it swept leaves its next run no change to make.
        if !plan.is_empty() || self.journal.receipt.entries.is_empty() {
            self.journal.store.sweep(&self.journal.receipt);
            kinds::sweep(root, &self.journal.receipt);
        }
        carried.effects.extend(self.journal.settled.iter().skip(ran_before).cloned());
        Ok(carried)
    }

    /// An entry of which a plan finds nothing any more leaves the receipt. It stays if its path shows another file system
    /// than the one it was written to.
    fn let_go(&mut self, plan: &Plan, resource: &Resource) -> Option<Finding> {
        let (root, receipt) = (self.journal.root, &self.journal.receipt);
        let entry = receipt.entry(resource)?;
        if !plan.forced
            && let Some(text) = receipt.hides(root, entry, "undo")
        {
            return Some(Finding { path: resource.clone(), text });
        }
        if let Some(path) = resource.path() {
            root.sweep(path);
        }
        self.journal.drop_entry(resource);
        None
    }

    /// Removes the folders that rocworker made and that are empty now, the deepest first. What could not go is a finding,
    /// and stays in the receipt.
    fn remove_folders(&mut self) -> Vec<Finding> {
        if self.journal.receipt.folders.is_empty() {
            return Vec::new();
        }
        let entries = &self.journal.receipt.entries;
        let paths: Vec<&Path> = entries.iter().filter_map(|entry| entry.path.path()).collect();
        let mut folders = self.journal.receipt.folders.clone();
        folders.sort();
        let (mut kept, mut failed) = (Vec::new(), Vec::<Finding>::new());
        for folder in folders.into_iter().rev() {
            let mut failed_paths = failed.iter().filter_map(|finding| finding.path.path());
            let is_needed = paths.iter().any(|path| path.starts_with(&folder))
                || failed_paths.any(|path| path.starts_with(&folder));
            let is_kept = is_needed
                || match self.journal.root.remove_empty_folder(&folder) {
                    // A folder that is not empty stays managed until the last entry has gone: rocworker's own
                    // state is in it.
                    Ok(has_gone) => !has_gone && !entries.is_empty(),
                    Err(error) => {
                        failed.push(Finding { path: folder.as_path().into(), text: error.to_string() });
                        true
                    }
                };
            kept.extend(is_kept.then_some(folder));
        }
        kept.reverse();
        if kept != self.journal.receipt.folders {
            self.journal.receipt.folders = kept;
            self.journal.unsaved = true;
        }
        failed
    }

    /// Adds an effect that rocworker found necessary only after it had made its changes.
    ///
    /// # Errors
    /// When the receipt cannot be written.
    pub fn add_pending(&mut self, effect: Effect, now: u64) -> Result<(), Error> {
        let root = self.journal.root;
        self.journal.receipt_mut().add_pending(&[effect], root, now);
        self.journal.save()
    }

    /// Adds a restart of the machine, which an earlier run asked for, in place of the one that is pending. `module` names
    /// the boot of that run: once another boot runs, the machine has restarted.
    pub fn adopt_reboot(&mut self, reason: String, module: ModuleBuild, now: u64) -> Result<(), Error> {
        let pending = &mut self.journal.receipt_mut().pending;
        let is_reboot = |pending: &Pending| matches!(pending.effect, Effect::Reboot { .. });
        let known = pending.iter().position(is_reboot).map(|at| pending.remove(at));
        let asked = Uptime { boot: module.boot_id.clone(), us: 0 };
        let (since, uptime) = known.map_or((now, Some(asked)), |known| (known.since, known.uptime));
        let effect = Effect::Reboot { reason, module: Some(module) };
        pending.push(Pending { effect, since, uptime, draining: None });
        pending.sort_by(|a, b| a.effect.cmp(&b.effect));
        self.journal.save()
    }

    /// Drops the pending effects for which `is_it` holds: no run carries them out any more.
    ///
    /// # Errors
    /// When the receipt cannot be written, or the files that announce it cannot be restored.
    pub fn drop_pending(&mut self, is_it: impl Fn(&Effect) -> bool) -> Result<(), Error> {
        let pending = &mut self.journal.receipt.pending;
        let is_reboot = |effect: &Effect| matches!(effect, Effect::Reboot { .. });
        let (count, was_pending) = (pending.len(), pending.iter().any(|it| is_reboot(&it.effect)));
        pending.retain(|pending| !is_it(&pending.effect));
        self.journal.unsaved |= pending.len() != count;
        if was_pending && !pending.iter().any(|it| is_reboot(&it.effect)) {
            unrecord(self.journal.root)?;
        }
        self.journal.save()
    }

    /// The effects that earlier changes left pending.
    #[must_use]
    pub fn pending(&self) -> Vec<Effect> {
        self.journal.receipt.pending.iter().map(|pending| pending.effect.clone()).collect()
    }
}

/// Why a change cannot be made yet; `None` where all that it needs is there: a file, or a package or module that came in
/// this run or had not to be touched. No file comes that names another whose write failed and that is not there: an
/// engine's configuration without the wrapper would fail each container.
fn unmet(root: &Root, plan: &Plan, carried: &Executed, change: &Change) -> Option<String> {
    let mut missing = carried.failed.iter().filter_map(|it| it.path.path()).filter(|path| !root.exists(path));
    if let Some(path) = missing.find(|path| change.leaves_named(path)) {
        return Some(format!("it names {}, which is not there", root.shown(path).display()));
    }
    let failed = || carried.failed.iter().chain(&plan.blocked).chain(&plan.contested).chain(&plan.skipped);
    change.needs.iter().find_map(|needed| {
        if let Some(path) = needed.path() {
            // A file that could not be edited still exists.
            let has_failed = || carried.failed.iter().any(|it| it.path == *needed);
            return match change.entry {
                None => (root.lstat(path).is_err() || has_failed()).then(|| unreplaced(needed)),
                Some(_) if !root.exists(path) => Some(format!("it needs {needed}, which is not there")),
                Some(_) => has_failed().then(|| format!("it needs {needed}, which could not be written")),
            };
        }
        let is_named =
            plan.changes.iter().any(|it| it.path == *needed) || failed().any(|it| it.path == *needed);
        let came = carried.done.contains(needed) || (!is_named && kinds::is_there(root, needed));
        (!came).then(|| format!("it needs {needed}, which did not come"))
    })
}
