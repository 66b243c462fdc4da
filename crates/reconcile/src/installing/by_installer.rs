//! An installer: its package by apt, then its program, and everything that came in the receipt before it comes.

use super::came::{came, came_with};
use super::{is_right, refusal};
use crate::apt::{self, Hands, Simulated};
use crate::dpkg::{self, Database};
use crate::fetch::sweep;
use crate::installer::repositories;
use crate::plan::Change;
use crate::work::Work;
use crate::{Came, Error, Installer, Step};

/// What ends it before its end.
enum Stop {
    /// The receipt cannot be kept.
    Receipt(Error),
    /// This change cannot be made.
    Change(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Receipt(error)
    }
}

impl From<String> for Stop {
    fn from(text: String) -> Self {
        Self::Change(text)
    }
}

impl From<dpkg::Error> for Stop {
    fn from(error: dpkg::Error) -> Self {
        Self::Change(error.to_string())
    }
}

impl Work<'_> {
    pub(super) fn install_by(
        &mut self,
        hands: &Hands,
        change: &Change,
        (name, installer): (&str, &Installer),
        now: u64,
        hear: &mut dyn FnMut(Step),
    ) -> Result<Result<(), String>, Error> {
        let before = match Database::read(self.root()) {
            Ok(before) => before,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let until_now = self.receipt().clone();
        let made = self.run_installer(hands, change, (name, installer), &before, now, hear);
        sweep(self.root());
        match made {
            Ok(()) => {
                self.end_change(change, now);
                Ok(Ok(()))
            }
            Err(Stop::Receipt(error)) => Err(error),
            Err(Stop::Change(text)) => {
                let is_untouched = Database::read(self.root())
                    .is_ok_and(|it| it.names() == before.names() && it.stanza(name) == before.stanza(name));
                if is_untouched {
                    self.take_back(until_now, change);
                }
                Ok(Err(text))
            }
        }
    }

    fn run_installer(
        &mut self,
        hands: &Hands,
        change: &Change,
        (name, installer): (&str, &Installer),
        before: &Database,
        now: u64,
        hear: &mut dyn FnMut(Step),
    ) -> Result<(), Stop> {
        self.begin_package(change, Vec::new(), now)?;
        if !is_right(before, name, None) {
            let file = installer.fetch(self.root(), hands, name, hear)?;
            let file = file.display().to_string();
            let anew = before.is_half_installed(name);
            let simulated = hands.simulate_install(&file, None, anew)?;
            self.expect(change, before, &simulated)?;
            let ran = hands.install(&file, None, anew, hear);
            self.note(change, before)?;
            ran?;
        }
        let brought = repositories(self.root(), name);
        let entry = self.receipt_mut().entries.iter_mut().find(|entry| entry.path == change.path);
        if let Some(entry) = entry {
            entry.effects.extend(brought);
            entry.effects.sort();
            entry.effects.dedup();
        }
        self.save()?;
        let middle = Database::read(self.root())?;
        let simulation = installer.configure(self.root(), &hands.configuration(true), "simulated.conf")?;
        let simulated = hands.simulate_program(&installer.argv, &simulation)?;
        self.expect(change, &middle, &simulated)?;
        let configuration = installer.configure(self.root(), &hands.configuration(false), "apt.conf")?;
        let ran = hands.program(&installer.argv, &configuration, hear);
        self.note(change, &middle)?;
        self.tell_asked(change);
        ran?;
        Ok(())
    }

    /// Keeps what is about to come, unless it is more than what may.
    fn expect(&mut self, change: &Change, before: &Database, simulated: &Simulated) -> Result<(), Stop> {
        if let Some(text) = refusal(simulated, &self.ours(change)) {
            return Err(Stop::Change(text));
        }
        let came: Vec<Came> =
            simulated.comes.iter().map(|(name, version)| came(before, name, version)).collect();
        self.receipt_mut().add_came(&change.path, came);
        Ok(self.save()?)
    }

    /// Keeps what came.
    fn note(&mut self, change: &Change, before: &Database) -> Result<(), Stop> {
        let after = Database::read(self.root())?;
        let known = before.names();
        let new = after.names();
        let new = new.difference(&known).map(|it| came_with(before, &after, it)).collect();
        self.receipt_mut().add_came(&change.path, new);
        self.receipt_mut().forget_missing(&change.path, &after);
        self.note_marks(change);
        Ok(self.save()?)
    }

    /// What the program asked for by name stands in apt's notes as if somebody had installed it by hand, and is ours
    /// all the same.
    fn tell_asked(&mut self, change: &Change) {
        let automatic = apt::automatic(self.root()).unwrap_or_default();
        for it in self.receipt_mut().came_mut(&change.path).iter_mut().filter(|it| !it.noted) {
            it.asked = !automatic.contains(&it.name);
            it.noted = true;
        }
    }
}
