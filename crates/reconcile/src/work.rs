//! Carrying a plan out: the receipt first, then the machine, one path at a time.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use root::{Lock, Root};

use crate::apt::Hands;
use crate::fetch::sweep;
use crate::history::Changed;
use crate::needs::unmet;
use crate::plan::{After, Change, Finding, Plan, Standing, Target, read};
use crate::reboot::untell;
use crate::receipt::{Entry, Ours, Receipt, place};
use crate::recorded::{self, Run};
use crate::replacing::{self, Replacing};
use crate::settle::{Outcome, Settled};
use crate::state::Found;
use crate::store::Store;
use crate::uptime::Uptime;
use crate::{Check, Desired, Effect, Error, Progress, Restarts, Stage, package, unpack};

/// The machine beneath a Root, with every other apply and undo kept out.
#[derive(Debug)]
pub struct Work<'a> {
    root: &'a Root,
    store: Store<'a>,
    receipt: Receipt,
    /// Whether the receipt on disk lacks something of this one.
    unsaved: bool,
    /// Who installs packages; `None`: nobody may.
    hands: Option<Hands>,
    /// What was necessary before a change of this run could be made, and what came of it.
    settled: Vec<Settled>,
    /// What this run has changed until now.
    made: Vec<Changed>,
    /// What the history is told of this run.
    run: Option<Run>,
    _lock: Lock,
}

/// What came of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    /// The changes that were made, by their place in the plan.
    pub done: Vec<PathBuf>,
    /// Those that were not, and why: the rest was made all the same.
    pub failed: Vec<Finding>,
    /// Effects that had to come before the end: what a repository offers was read for the first of its packages.
    pub effects: Vec<Settled>,
}

impl<'a> Work<'a> {
    /// Takes the lock, and reads what is ours.
    ///
    /// # Errors
    /// When another has been at work for a minute, or the receipt cannot be read or believed.
    pub fn begin(root: &'a Root) -> Result<Self, Error> {
        Self::begin_told(root, &mut |_| {})
    }

    /// The same; `told` hears when another run has to end first.
    ///
    /// # Errors
    /// As [`Work::begin`].
    pub fn begin_told(root: &'a Root, told: &mut dyn FnMut(Progress<'_>)) -> Result<Self, Error> {
        let store = Store::new(root);
        let lock = store.lock(told)?;
        let mut receipt = store.receipt()?;
        let killed_at = receipt.writing.take();
        if let Some(path) = &killed_at {
            let was_unpacked = |it: &&Entry| matches!(it.ours, Ours::Unpacked { .. });
            let unpacked = receipt.entry(path).filter(was_unpacked).is_some();
            if unpacked && root.is_host() {
                unpack::sweep_of(root, path);
            } else if package::named(path).is_some() && root.is_host() {
                sweep(root);
            } else if path.is_absolute() {
                receipt.displaced.extend(replacing::end(root, path, receipt.replacing.as_ref())?);
            }
            if unpacked && root.exists(path) {
                receipt.forget_older(path);
            }
            if let Ok(found) = Found::look(root, path) {
                let state = found.state();
                receipt.settle_on(path, &state);
                recorded::settle_on(&mut receipt, path, &state);
            }
        }
        receipt.replacing = None;
        store.sweep_own();
        let displaced = receipt.displaced.len();
        receipt.displaced.retain(|path| root.exists(path));
        let unsaved = killed_at.is_some() || receipt.displaced.len() != displaced;
        Ok(Self {
            root,
            store,
            receipt,
            unsaved,
            hands: None,
            settled: Vec::new(),
            made: Vec::new(),
            run: None,
            _lock: lock,
        })
    }

    /// The same with somebody who installs packages.
    #[must_use]
    pub fn by(self, hands: Option<Hands>) -> Self {
        Self { hands, ..self }
    }

    /// Keeps by which rule units are restarted, for an undo that is told none.
    pub fn restart_by(&mut self, restarts: Restarts) {
        if self.receipt.restart != Some(restarts) {
            self.receipt_mut().restart = Some(restarts);
        }
    }

    /// What was changed until now, also by a run that came to no good end.
    #[must_use]
    pub fn made(&self) -> &[Changed] {
        &self.made
    }

    #[must_use]
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    pub(crate) fn run_mut(&mut self) -> &mut Option<Run> {
        &mut self.run
    }

    /// As [`Plan::make`], from what is ours now.
    ///
    /// # Errors
    /// As [`Plan::make`].
    pub fn plan(
        &self,
        desired: &Desired,
        stage: Option<Stage>,
        force: bool,
        now: u64,
    ) -> Result<Plan, Error> {
        Plan::make(self.root, desired, &self.receipt, stage, force, now)
    }

    /// Makes the changes of a plan, each only if its path still holds what the plan saw there.
    ///
    /// # Errors
    /// When the receipt cannot be kept: nothing is changed that could not be taken back.
    pub fn carry_out(
        &mut self,
        plan: &Plan,
        now: u64,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Carried, Error> {
        let mut carried = Carried::default();
        let told_of = self.settled.len();
        for path in &plan.gone {
            carried.failed.extend(self.let_go(plan, path));
        }
        for entry in &plan.kept {
            self.receipt.put(entry.clone());
            self.unsaved = true;
        }
        let mut standing = Standing::default();
        for change in &plan.changes {
            told(Progress::Begins(change));
            let held = change.target.is_gone().then(|| standing.hold(&change.path)).flatten();
            let made = match held.or_else(|| unmet(self.root, plan, &carried, change)) {
                Some(text) => Err(text),
                None => match &change.target {
                    Target::Package(doing) => {
                        let hear = &mut |step| told(Progress::Comes(change, step));
                        self.make_package(change, doing, now, hear)?
                    }
                    Target::Fetched { url, check, mode, owner } => {
                        match self.fetch(change, (url, check), *mode, *owner) {
                            Ok(change) => self.make(&change, now)?,
                            Err(text) => Err(text),
                        }
                    }
                    Target::Unpacked(wanted) => {
                        let hear = &mut |step| told(Progress::Comes(change, step));
                        self.make_unpacked(change, wanted, now, hear)?
                    }
                    Target::Load { name } => self.load(change, name, now)?,
                    Target::Unload { names } => self.unload(change, names, now)?,
                    _ => self.make(change, now)?,
                },
            };
            match made {
                Ok(()) => {
                    self.made.push(Changed { path: change.path.clone(), change: change.change });
                    carried.done.push(change.path.clone());
                }
                Err(text) => {
                    standing.add_listed(&change.path, read(self.root, &change.path));
                    carried.failed.push(Finding { path: change.path.clone(), text });
                }
            }
        }
        carried.failed.extend(self.remove_folders());
        self.unsaved |= self.receipt.writing.take().is_some();
        self.receipt.replacing = None;
        self.note_run(None);
        self.save()?;
        if !plan.is_empty() {
            self.store.sweep(&self.receipt);
        }
        carried.effects.extend(self.settled.iter().skip(told_of).cloned());
        Ok(carried)
    }

    /// The outer error is one of the receipt, the inner one of this change.
    fn make(&mut self, change: &Change, now: u64) -> Result<Result<(), String>, Error> {
        match Found::look(self.root, &change.path).map(|found| found.state()) {
            Ok(state) if state == change.from => {}
            Ok(state) => {
                return Ok(Err(format!(
                    "it has changed since it was looked at, and is {} now: run it again",
                    state
                )));
            }
            Err(error) => return Ok(Err(error.to_string())),
        }
        if let Some(bytes) = &change.keep {
            self.store.keep(bytes)?;
        }
        let until_now = self.receipt.clone();
        if change.target != Target::Absent {
            self.receipt.add_folders(self.root.missing_folders(&change.path));
        }
        self.begin_change(change, now)?;
        if let Err(error) = self.bring_about(&change.path, &change.from, &change.target) {
            let is_untouched = Found::look(self.root, &change.path).is_ok_and(|it| it.state() == change.from);
            let is_theirs = matches!(error, root::Error::Changed { .. });
            if is_untouched || is_theirs {
                // Nothing of it is ours, and nothing has to be restarted for it. Folders on the way may be there.
                self.take_back(until_now, change);
            }
            return Ok(Err(error.to_string()));
        }
        self.end_change(change, now);
        Ok(Ok(()))
    }

    /// The change with its bytes.
    fn fetch(
        &self,
        change: &Change,
        (url, check): (&str, &Check),
        mode: u32,
        owner: (u32, u32),
    ) -> Result<Change, String> {
        let hands = self.hands().ok_or("files are fetched on the running machine only")?;
        let bytes = hands.fetch(url, check, &change.path)?;
        Ok(change.clone().fetched(bytes, mode, owner))
    }

    /// Keeps what is about to be done.
    pub(crate) fn begin_change(&mut self, change: &Change, now: u64) -> Result<(), Error> {
        if let After::Held(entry) = &change.after {
            // What apt has read of a repository that the source named until now goes.
            let held = self.receipt.entry(&change.path).map(|held| held.effects.clone()).unwrap_or_default();
            let is_read = |effect: &Effect| matches!(effect, Effect::AptUpdate { .. });
            let held: Vec<Effect> = held.into_iter().filter(is_read).collect();
            self.receipt.owe(&held, now, Uptime::now(self.root).as_ref());
            let mount = place(&change.path).map(|place| self.root.mount_of(place));
            self.receipt.put(Entry { mount, ..(**entry).clone() });
        }
        self.receipt.owe(&change.effects, now, Uptime::now(self.root).as_ref());
        self.receipt.writing = Some(change.path.clone());
        self.receipt.replacing = Some(Replacing { from: change.from.clone(), to: change.to.clone() });
        self.note_run(Some(change));
        self.unsaved = true;
        self.save()
    }

    /// Keeps that it is done.
    pub(crate) fn end_change(&mut self, change: &Change, now: u64) {
        // Who has restarted a unit between the plan and the write has not restarted it with this.
        self.receipt.owe(&change.effects, clock().max(now), Uptime::now(self.root).as_ref());
        match change.after {
            After::Dropped => self.receipt.drop_entry(&change.path),
            After::Held(_) => self.receipt.forget_older(&change.path),
        }
        self.unsaved = true;
    }

    /// Keeps the receipt as it was before a change of which nothing was done.
    pub(crate) fn take_back(&mut self, until_now: Receipt, change: &Change) {
        let folders = std::mem::take(&mut self.receipt.folders);
        self.receipt = Receipt { folders, writing: Some(change.path.clone()), ..until_now };
        self.unsaved = true;
    }

    /// An entry of which a plan finds nothing any more leaves the receipt, unless its path shows another file system than
    /// the one it was written to.
    fn let_go(&mut self, plan: &Plan, path: &Path) -> Option<Finding> {
        let entry = self.receipt.entry(path)?;
        if !plan.forced
            && let Some(text) = self.receipt.hides(self.root, entry, "undo")
        {
            return Some(Finding { path: path.to_owned(), text });
        }
        if path.is_absolute() {
            self.root.sweep(path);
        }
        self.receipt.drop_entry(path);
        self.unsaved = true;
        None
    }

    /// Takes away the folders that we made and that nothing is in any more, the deepest first. What could not go is
    /// told, and stays in the receipt.
    fn remove_folders(&mut self) -> Vec<Finding> {
        if self.receipt.folders.is_empty() {
            return Vec::new();
        }
        let is_needed =
            |folder: &Path| self.receipt.entries.iter().any(|entry| entry.path.starts_with(folder));
        let mut folders = self.receipt.folders.clone();
        folders.sort();
        let (mut kept, mut failed) = (Vec::new(), Vec::<Finding>::new());
        for folder in folders.into_iter().rev() {
            let holds_failed = failed.iter().any(|finding| finding.path.starts_with(&folder));
            if is_needed(&folder) || holds_failed {
                kept.push(folder);
                continue;
            }
            match self.root.remove_empty_folder(&folder) {
                Ok(true) => {}
                // Somebody else's files are in it: it is theirs once nothing of ours is.
                Ok(false) if self.receipt.entries.is_empty() => {}
                // Our own state stands in its folder until the last entry has gone.
                Ok(false) => kept.push(folder),
                Err(error) => {
                    failed.push(Finding { path: folder.clone(), text: error.to_string() });
                    kept.push(folder);
                }
            }
        }
        kept.reverse();
        if kept != self.receipt.folders {
            self.receipt.folders = kept;
            self.unsaved = true;
        }
        failed
    }

    /// Keeps that something is to be done, which only showed once changes were made.
    ///
    /// # Errors
    /// When the receipt cannot be written.
    pub fn owe(&mut self, effect: Effect, now: u64) -> Result<(), Error> {
        let uptime = Uptime::now(self.root);
        self.receipt_mut().owe(&[effect], now, uptime.as_ref());
        self.save()
    }

    /// Forgets what was owed for something that has been taken back.
    ///
    /// # Errors
    /// When the receipt cannot be written, or what others were told of it cannot be taken back.
    pub fn forgive(&mut self, is_it: impl Fn(&Effect) -> bool) -> Result<(), Error> {
        let (gone, pending): (Vec<_>, Vec<_>) =
            self.receipt.pending.drain(..).partition(|pending| is_it(&pending.effect));
        self.receipt.pending = pending;
        let is_reboot = |effect: &Effect| matches!(effect, Effect::Reboot { .. });
        let is_owed_still = self.receipt.pending.iter().any(|pending| is_reboot(&pending.effect));
        if !is_owed_still && gone.iter().any(|pending| is_reboot(&pending.effect)) {
            untell(self.root)?;
        }
        self.unsaved |= !gone.is_empty();
        self.save()
    }

    /// What is still to be done after earlier changes.
    #[must_use]
    pub fn owed(&self) -> Vec<Effect> {
        self.receipt.pending.iter().map(|pending| pending.effect.clone()).collect()
    }

    pub(crate) fn root(&self) -> &'a Root {
        self.root
    }

    pub(crate) fn hands(&self) -> Option<&Hands> {
        self.hands.as_ref()
    }

    /// What was tried in this run and failed: it is not tried again at its end.
    pub(crate) fn failed(&self) -> Vec<Effect> {
        let failed = self.settled.iter().filter(|it| it.outcome == Outcome::Failed);
        failed.map(|it| it.effect.clone()).collect()
    }

    pub(crate) fn settled(&self) -> &[Settled] {
        &self.settled
    }

    pub(crate) fn settled_mut(&mut self) -> &mut Vec<Settled> {
        &mut self.settled
    }

    /// The receipt for what need not be written by itself.
    pub(crate) fn receipt_kept(&mut self) -> &mut Receipt {
        &mut self.receipt
    }

    pub(crate) fn receipt_mut(&mut self) -> &mut Receipt {
        self.unsaved = true;
        &mut self.receipt
    }

    /// Brings the receipt on disk up to date.
    pub(crate) fn save(&mut self) -> Result<(), Error> {
        if self.unsaved {
            self.store.save(&self.receipt)?;
            self.unsaved = false;
        }
        Ok(())
    }
}

/// Seconds since 1970.
fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
