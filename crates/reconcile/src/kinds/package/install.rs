//! Packages that come: simulated first, then into the receipt, then by apt. Of an installer its package comes by apt, and
//! what the installer's program has apt install.

use std::collections::BTreeSet;

use super::job::{Job, came};
use crate::apt::dpkg::{Database, Status, There};
use crate::apt::fetch::sweep;
use crate::apt::sources::Known;
use crate::apt::{self, Installer, Simulated};
use crate::error::Error;
use crate::model::{Effect, Outcome, Settled};
use crate::receipt::Failure;

impl Job<'_, '_> {
    /// The lists of repositories that are new: without them apt does not know what they offer. Why one of them could
    /// not be read.
    pub(super) fn read_repositories(&mut self) -> Result<Option<String>, Error> {
        let mut unread = None;
        for pending in self.journal.receipt.pending.clone() {
            let Effect::AptUpdate { source, uri, suite } = &pending.effect else { continue };
            // A repository that could not be read for an earlier package is not tried again for this one.
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
                Err(text) => (Outcome::Failed, unread.insert(text).clone()),
            };
            self.journal.settled.push(Settled { effect: pending.effect, outcome, text });
        }
        Ok(unread)
    }

    pub(super) fn install(&mut self, version: Option<&str>) -> Result<(), Failure> {
        let name = self.name;
        let before = Database::read(self.journal.root)?;
        if is_right(&before, name, version) {
            // Another process has completed the installation meanwhile.
            if self.change.entry.is_some() && self.journal.receipt.entry(&self.change.path).is_none() {
                return Err("another process has installed it meanwhile: run this again".into());
            }
            // A killed run may have noted more than what came.
            self.note_came(&before, &before);
            self.journal.end(self.change, self.now);
            return Ok(());
        }
        let wanted = apt::wanted(name, version);
        let command = apt::install(&wanted, before.is_half_installed(name));
        let simulated = self.simulated(&command, &[&wanted])?;
        let known = if self.is_begun() { BTreeSet::new() } else { before.names() };
        let made = self.attempt(&before, |job| {
            job.step(&before, &simulated, |job| job.manager.execute(&command, job.hear))?;
            let after = Database::read(job.journal.root)?;
            if is_right(&after, name, version) {
                return Ok(());
            }
            let text = "apt says that it was installed, and dpkg does not: see what dpkg -s";
            Err(format!("{text} {name} says").into())
        });
        if made.is_err() {
            self.journal.packages.clear();
        }
        self.mark(&known);
        made
    }

    /// What apt would do for `asked`, by one simulation of all that comes in this run, or of all that goes. Where apt would
    /// do more, or a change has failed, apt is asked for each change by itself: a refused one does not stop the others.
    pub(super) fn simulated(&mut self, command: &[&str], asked: &[&str]) -> Result<Simulated, String> {
        let goes = asked.iter().any(|it| it.ends_with('-'));
        let all = self.journal.packages.iter().map(String::as_str).filter(|it| it.ends_with('-') == goes);
        let all: Vec<&str> = all.collect();
        // A removal that is planned anew may name packages that the plan did not.
        if asked.len() < all.len() && asked.iter().all(|it| all.contains(it)) {
            if !self.journal.simulated.contains_key(&goes) {
                let of_all = self.ask(&[&["install"], &all[..]].concat(), &all).ok();
                self.journal.simulated.insert(goes, of_all);
            }
            if let Some(Some(simulated)) = self.journal.simulated.get(&goes) {
                let is_anothers = |it: &str| it != self.name && all.iter().any(|all| named(all) == it);
                let comes = simulated.comes.iter().filter(|(it, _)| !is_anothers(it)).cloned().collect();
                return Ok(Simulated { comes, ..simulated.clone() });
            }
        }
        self.ask(command, asked)
    }

    fn ask(&self, command: &[&str], asked: &[&str]) -> Result<Simulated, String> {
        self.accept(self.manager.simulate(command)?, asked)
    }

    fn accept(&self, simulated: Simulated, asked: &[&str]) -> Result<Simulated, String> {
        refusal(&simulated, asked, &self.managed()).map_or(Ok(simulated), Err)
    }

    pub(super) fn install_by(&mut self, installer: &Installer) -> Result<(), Failure> {
        let before = Database::read(self.journal.root)?;
        let made = self.attempt(&before, |job| job.run_installer(installer, &before));
        sweep(self.journal.root);
        made
    }

    /// Begins with the change, and ends it, or drops it where it failed before anything came.
    fn attempt(
        &mut self,
        before: &Database,
        run: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let until_now = self.journal.receipt.clone();
        self.begin()?;
        let made = run(self);
        // No package came, and this one is unchanged.
        let is_untouched = Database::read(self.journal.root).is_ok_and(|after| {
            after.names().is_subset(&before.names()) && before.there(self.name) == after.there(self.name)
        });
        match &made {
            Ok(()) => self.journal.end(self.change, self.now),
            Err(Failure::Change(_)) if is_untouched => self.journal.roll_back(until_now, self.change),
            Err(_) => {}
        }
        made
    }

    fn run_installer(&mut self, installer: &Installer, before: &Database) -> Result<(), Failure> {
        let (root, name) = (self.journal.root, self.name);
        if !is_right(before, name, None) {
            let file = installer.fetch(root, &self.manager, name, self.hear)?.display().to_string();
            let command = apt::install(&file, before.is_half_installed(name));
            let simulated = self.ask(&command, &[])?;
            self.step(before, &simulated, |job| job.manager.execute(&command, job.hear))?;
        }
        if let Some(entry) = self.journal.receipt_mut().entry_mut(&self.change.path) {
            let brought = apt::repositories(root, &self.manager, name).into_iter();
            let update = |Known { file, url, suite }| Effect::AptUpdate { source: file, uri: url, suite };
            entry.effects.extend(brought.map(update));
            entry.effects.sort();
            entry.effects.dedup();
        }
        self.journal.save()?;
        let middle = Database::read(root)?;
        let output = self.manager.simulate_program(&installer.argv, &[])?;
        let simulated = self.accept(Simulated::parse(&output), &[])?;
        let made = self
            .step(&middle, &simulated, |job| job.manager.program(&installer.argv, &[], job.hear).map(drop));
        self.note_asked();
        made
    }

    /// Runs what was simulated: what is about to come is in the receipt before it comes, and what came afterwards.
    fn step(
        &mut self,
        before: &Database,
        simulated: &Simulated,
        run: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), Failure> {
        let there = before.names();
        let comes = simulated.comes.iter().filter(|(name, _)| !there.contains(name));
        let comes = comes.map(|(name, version)| came(before, name, version)).collect();
        if let Some(managed) = self.managed_mut() {
            managed.add_came(comes);
        }
        self.journal.save()?;
        let ran = run(self);
        let after = Database::read(self.journal.root)?;
        self.note_came(before, &after);
        self.note_marks();
        self.journal.save()?;
        Ok(ran?)
    }
}

/// The package that an argument of `apt-get install` names.
fn named(asked: &str) -> &str {
    asked.split('=').next().unwrap_or(asked)
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

/// Why apt would do other than what was asked for, or more. What was installed as `managed` may be replaced where nothing
/// goes.
fn refusal(simulated: &Simulated, asked: &[&str], managed: &BTreeSet<String>) -> Option<String> {
    let (going, coming): (Vec<&str>, Vec<&str>) = asked.iter().partition(|it| it.ends_with('-'));
    if let Some(text) = coming.into_iter().find_map(|it| other_than(simulated, named(it))) {
        return Some(text);
    }
    let goes =
        simulated.goes.iter().filter(|it| !going.iter().any(|asked| asked.strip_suffix('-') == Some(it)));
    let replaced = simulated.replaced.iter().filter(|it| !going.is_empty() || !managed.contains(&it.0));
    let comes = simulated.comes.iter().filter(|_| !going.is_empty());
    let more = goes.map(|name| format!("remove {name}"));
    let more = more.chain(replaced.map(|(name, old, new)| format!("replace {name} ({old} to {new})")));
    let more: Vec<String> = more.chain(comes.map(|(name, _)| format!("install {name}"))).collect();
    (!more.is_empty()).then(|| {
        format!(
            "apt would {} for it, which is not configured: do that yourself if you agree, then run rocworker again",
            more.join(", ")
        )
    })
}

pub(super) fn is_right(database: &Database, name: &str, version: Option<&str>) -> bool {
    let is_right =
        |it: &There| it.status == Status::Installed && version.is_none_or(|version| version == it.version);
    database.there(name).is_some_and(is_right)
}
