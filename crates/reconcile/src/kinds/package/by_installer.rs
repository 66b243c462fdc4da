//! An installer: its package by apt, then its program, and everything that came in the receipt before it comes.

use super::install::{Job, all_of, is_right, refusal};
use crate::apt::dpkg::Database;
use crate::apt::fetch::sweep;
use crate::apt::{Installer, Simulated, install, repositories};
use crate::model::Effect;
use crate::receipt::Failure;

impl Job<'_, '_> {
    pub(super) fn install_by(&mut self, installer: &Installer) -> Result<(), Failure> {
        let before = Database::read(self.journal.root)?;
        let until_now = self.journal.receipt.clone();
        let made = self.run_installer(installer, &before);
        sweep(self.journal.root);
        match &made {
            Ok(()) => self.journal.end(self.change, self.now),
            Err(Failure::Change(_)) => {
                let is_untouched = Database::read(self.journal.root).is_ok_and(|it| {
                    it.names() == before.names() && it.stanza(self.name) == before.stanza(self.name)
                });
                if is_untouched {
                    self.journal.roll_back(until_now, self.change);
                }
            }
            Err(Failure::Receipt(_)) => {}
        }
        made
    }

    fn run_installer(&mut self, installer: &Installer, before: &Database) -> Result<(), Failure> {
        let (root, name) = (self.journal.root, self.name);
        self.begin(Vec::new())?;
        if !is_right(before, name, None) {
            let file = installer.fetch(root, &self.manager, name, self.hear)?.display().to_string();
            let command = install(&file, before.is_half_installed(name));
            let simulated = self.manager.simulate(&command)?;
            self.expect(before, &simulated)?;
            let ran = self.manager.carry_out(&command, self.hear);
            self.note(before)?;
            ran?;
        }
        if let Some(entry) = self.journal.receipt_mut().entry_mut(&self.change.path) {
            let brought = repositories(root, name).into_iter();
            entry.effects.extend(brought.map(|it| Effect::AptUpdate {
                source: it.file,
                uri: it.url,
                suite: it.suite,
            }));
            entry.effects.sort();
            entry.effects.dedup();
        }
        self.journal.save()?;
        let middle = Database::read(root)?;
        let simulation = installer.configure(root, &self.manager.configuration(true), "simulated.conf")?;
        let simulated = self.manager.simulate_program(&installer.argv, &simulation)?;
        self.expect(&middle, &simulated)?;
        let configuration = installer.configure(root, &self.manager.configuration(false), "apt.conf")?;
        let ran = self.manager.program(&installer.argv, &configuration, self.hear);
        self.note(&middle)?;
        self.note_asked();
        Ok(ran.map(drop)?)
    }

    /// Keeps what is about to come, unless it is more than what may.
    fn expect(&mut self, before: &Database, simulated: &Simulated) -> Result<(), Failure> {
        if let Some(text) = refusal(simulated, &self.ours()) {
            return Err(text.into());
        }
        if let Some(ours) = self.ours_mut() {
            ours.add_came(all_of(before, simulated));
        }
        Ok(self.journal.save()?)
    }

    /// Keeps what came.
    fn note(&mut self, before: &Database) -> Result<(), Failure> {
        let after = Database::read(self.journal.root)?;
        self.note_came(before, &after);
        self.note_marks();
        Ok(self.journal.save()?)
    }
}
