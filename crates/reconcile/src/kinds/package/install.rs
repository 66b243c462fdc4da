//! Packages that come: simulated first, then into the receipt, then by apt.

use std::collections::BTreeSet;

use crate::apt::dpkg::{Database, Status};
use crate::apt::{self, PackageManager, Simulated, Step};
use crate::error::Error;
use crate::model::{Came, Change, Effect, Ours, Outcome, Settled, State};
use crate::receipt::{Failure, Journal};

/// A change of packages at work.
pub(super) struct Job<'j, 'r> {
    pub(super) journal: &'j mut Journal<'r>,
    pub(super) manager: PackageManager,
    pub(super) change: &'j Change,
    /// Of the package that the change is about.
    pub(super) name: &'j str,
    pub(super) now: u64,
    pub(super) hear: &'j mut dyn FnMut(Step),
}

impl Job<'_, '_> {
    /// The lists of repositories that are new: without them apt does not know what they offer. Why one of them could
    /// not be read.
    pub(super) fn read_repositories(&mut self) -> Result<Option<String>, Error> {
        let mut unread = None;
        for pending in self.journal.receipt.pending.clone() {
            let Effect::AptUpdate { source, uri, suite } = &pending.effect else { continue };
            // What could not be read for the package before is not tried again for this one.
            if let Some(failed) = self.journal.settled.iter().find(|it| it.effect == pending.effect) {
                unread = Some(failed.text.clone());
                continue;
            }
            let (outcome, text) = match apt::update(self.journal.root, &self.manager, source, uri, suite) {
                Ok(text) => {
                    self.journal.receipt_mut().pending.retain(|it| it.effect != pending.effect);
                    self.journal.save()?;
                    (Outcome::Done, text)
                }
                Err(text) => {
                    unread = Some(text.clone());
                    (Outcome::Failed, text)
                }
            };
            self.journal.settled.push(Settled { effect: pending.effect, outcome, text });
        }
        Ok(unread)
    }

    pub(super) fn install(&mut self, version: Option<&str>) -> Result<(), Failure> {
        let name = self.name;
        let before = Database::read(self.journal.root)?;
        if is_right(&before, name, version) {
            // Whoever was at it has come to the end meanwhile.
            if self.change.entry.is_some() && self.journal.receipt.entry(&self.change.path).is_none() {
                return Err("somebody else has installed it meanwhile: run it again".into());
            }
            self.journal.end(self.change, self.now);
            return Ok(());
        }
        let wanted = apt::wanted(name, version);
        let command = apt::install(&wanted, before.is_half_installed(name));
        let simulated = self.manager.simulate(&command)?;
        if let Some(text) = other_than(&simulated, name).or_else(|| refusal(&simulated, &self.ours())) {
            return Err(text.into());
        }
        let (until_now, was_begun) = (self.journal.receipt.clone(), self.is_begun());
        self.begin(all_of(&before, &simulated))?;
        let ran = self.manager.carry_out(&command, self.hear);
        let after = Database::read(self.journal.root)?;
        // Somebody may have changed what is to be had in between, so that other packages came than were simulated.
        let known = before.names();
        let is_untouched = after.names().is_subset(&known) && before.stanza(name) == after.stanza(name);
        if ran.is_err() && is_untouched {
            self.journal.roll_back(until_now, self.change);
            return Ok(ran?);
        }
        self.note_came(&before, &after);
        self.mark(if was_begun { &NONE } else { &known });
        ran?;
        if !is_right(&after, name, version) {
            let text = "apt says that it was installed, and dpkg does not: see what dpkg -s";
            return Err(format!("{text} {name} says").into());
        }
        self.journal.end(self.change, self.now);
        Ok(())
    }

    /// Keeps what is about to be done; `came`: what is to come with it.
    pub(super) fn begin(&mut self, came: Vec<Came>) -> Result<(), Error> {
        let mut change = self.change.clone();
        match &mut change.entry {
            Some(entry) => {
                entry.ours.add_came(came);
                self.journal.receipt_mut().put((**entry).clone());
            }
            None => {
                if let Some(Ours::Package { begun, .. }) = self.ours_mut() {
                    *begun = true;
                }
            }
        }
        self.journal.begin(&change, self.now)
    }

    /// Whether a run has begun with it that has not come to its end.
    pub(super) fn is_begun(&self) -> bool {
        self.journal.receipt.entry(&self.change.path).is_some_and(|entry| entry.ours.is_begun())
    }

    /// What came with it until now.
    pub(super) fn came(&self) -> &[Came] {
        self.journal.receipt.entry(&self.change.path).map_or(&[], |entry| entry.ours.came())
    }

    pub(super) fn ours_mut(&mut self) -> Option<&mut Ours> {
        self.journal.receipt_mut().entry_mut(&self.change.path).map(|entry| &mut entry.ours)
    }

    /// Names that may be replaced by other versions: they are ours.
    pub(super) fn ours(&self) -> BTreeSet<String> {
        let came = self.journal.receipt.entries.iter().flat_map(|entry| entry.ours.came());
        let mut ours: BTreeSet<String> = came.map(|it| it.name.clone()).collect();
        // One that is there in part is installed again.
        if matches!(self.change.from, State::Package { status, .. } if status != Status::Installed) {
            ours.insert(self.name.to_owned());
        }
        ours
    }
}

static NONE: BTreeSet<String> = BTreeSet::new();

pub(super) fn came(before: &Database, name: &str, version: &str) -> Came {
    let had = before.there(name).ok().flatten();
    let had_configuration = had.is_some_and(|it| it.status == Status::ConfigFiles);
    Came { name: name.to_owned(), version: version.to_owned(), had_configuration, asked: false, noted: false }
}

/// What would come.
pub(super) fn all_of(before: &Database, simulated: &Simulated) -> Vec<Came> {
    simulated.comes.iter().map(|(name, version)| came(before, name, version)).collect()
}

/// apt takes a name that no package has for one that a package provides, or for a pattern, and every package that fits
/// (apt-get(8)).
fn other_than(simulated: &Simulated, name: &str) -> Option<String> {
    let replaced = simulated.replaced.iter().map(|(name, ..)| name.as_str());
    let changed: Vec<&str> = simulated.comes.iter().map(|(name, _)| name.as_str()).chain(replaced).collect();
    // `NAME:ARCHITECTURE` of the machine's own is printed without it.
    let is_it = |it: &&str| *it == name || name.strip_prefix(*it).is_some_and(|rest| rest.starts_with(':'));
    (!changed.is_empty() && !changed.iter().any(is_it)).then(|| {
        format!(
            "apt knows no package {name}, and would install {} for it: name in the configuration what is meant",
            changed.join(", ")
        )
    })
}

/// Why what would happen is not what was asked for.
pub(super) fn refusal(simulated: &Simulated, ours: &BTreeSet<String>) -> Option<String> {
    let foreign = |name: &&String| !ours.contains(*name);
    let goes: Vec<&str> = simulated.goes.iter().filter(foreign).map(String::as_str).collect();
    if !goes.is_empty() {
        let goes = goes.join(", ");
        return Some(format!(
            "apt would remove {goes} for it, which nobody asked for: remove {goes} yourself if that may be, then apply \
             again"
        ));
    }
    let replaced = simulated.replaced.iter().filter(|(name, ..)| foreign(&name));
    let replaced: Vec<String> = replaced.map(|(name, old, new)| format!("{name} ({old} to {new})")).collect();
    (!replaced.is_empty()).then(|| {
        format!(
            "apt would replace {} for it, which nobody asked for: upgrade that yourself if it may be, then apply again",
            replaced.join(", ")
        )
    })
}

pub(super) fn is_right(database: &Database, name: &str, version: Option<&str>) -> bool {
    let there = database.there(name).ok().flatten();
    there.is_some_and(|it| {
        it.status == Status::Installed && version.is_none_or(|version| version == it.version)
    })
}
