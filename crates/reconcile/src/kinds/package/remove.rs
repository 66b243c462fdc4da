//! Packages that go, and what becomes of those that were to go and stay.

use std::collections::BTreeSet;

use super::job::Job;
use super::{observe, revert};
use crate::apt;
use crate::apt::dpkg::Database;
use crate::kinds::case::{Observed, Unchanged};
use crate::model::{Came, Change, Doing, Managed, Target};
use crate::receipt::Failure;

impl Job<'_, '_> {
    pub(super) fn remove<'n>(&mut self, names: &'n [String], purge: &'n [String]) -> Result<(), Failure> {
        let database = Database::read(self.journal.root)?;
        // Some may have gone with a run that was killed.
        let known = |names: &'n [String]| -> Vec<&'n str> {
            let names = names.iter().map(String::as_str);
            names.filter(|name| database.there(name).is_some()).collect()
        };
        let (names, purge) = (known(names), known(purge));
        if names.is_empty() {
            self.journal.end(self.change, self.now);
            return Ok(());
        }
        // Somebody may have installed what needs them since the plan, or since apt simulated all of this run.
        let going = names.iter().map(|&name| name.to_owned()).collect();
        if let Some((it, by)) = database.needed(&going).pop_first() {
            let remedy = format!("remove {by} yourself if you agree, then run this again");
            return Err(format!("{it} stays, which {by} needs: {remedy}").into());
        }
        let asked = apt::going(&names);
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let simulated = self.simulated(&[&["install"], &asked[..]].concat(), &asked).map(drop);
        let (until_now, automatic) = (self.journal.receipt.clone(), self.automatic());
        self.hand_over(&database, &names);
        self.begin()?;
        let steps = match purge.len() {
            0 => vec![("remove", &names)],
            count if count == names.len() => vec![("purge", &names)],
            _ => vec![("remove", &names), ("purge", &purge)],
        };
        let mut ran = Ok(());
        for (verb, names) in steps {
            // apt may do nothing before another package is repaired, or would do more: where another package is half done,
            // it would change that too. Or apt refuses a package that was unpacked in part. Then dpkg does this, which
            // removes no other package.
            ran = simulated
                .clone()
                .and_then(|()| self.manager.apt_get(&[&[verb], &names[..]].concat(), self.hear).map(drop));
            if ran.is_err() {
                let option = format!("--{verb}");
                let argv = [&["dpkg", "--force-remove-reinstreq", &option], &names[..]].concat();
                ran = self.manager.run(&argv, self.hear).map(drop).or(ran);
            }
            if ran.is_err() {
                break;
            }
        }
        let there = Database::read(self.journal.root)?.names();
        let left: Vec<&str> = names.iter().copied().filter(|name| there.contains(*name)).collect();
        if let Err(error) = &mut ran {
            self.journal.packages.clear();
            if let Err(text) = self.stay(&left, &automatic) {
                error.push_str(&format!("; {text}"));
            }
            if left.len() == names.len() {
                self.journal.roll_back(until_now, self.change);
            } else {
                self.mark(&BTreeSet::new());
            }
        }
        ran?;
        if !left.is_empty() {
            return Err(format!("apt says that they went, and dpkg still has {}", left.join(", ")).into());
        }
        self.journal.end(self.change, self.now);
        Ok(())
    }

    /// Hands packages that stay, because another managed package needs them, over to that package's entry.
    /// What goes is kept apart from what stays, because apt forgets automatic marks before dpkg removes
    /// anything.
    fn hand_over(&mut self, database: &Database, names: &[&str]) {
        if self.change.entry.is_some() {
            return;
        }
        let (goes, stays): (Vec<Came>, Vec<Came>) =
            self.came().iter().cloned().partition(|it| names.contains(&it.name.as_str()));
        for came in stays {
            let going = names.iter().copied().chain([came.name.as_str()]).map(str::to_owned).collect();
            let needed = database.needed(&going);
            let Some(by) = needed.get(&came.name) else { continue };
            let entries = &mut self.journal.receipt_mut().entries;
            for entry in entries.iter_mut().filter(|entry| entry.path != self.change.path) {
                if let Managed::Package { came: known, .. } = &mut entry.managed
                    && known.iter().any(|it| it.name == *by)
                    && !known.contains(&came)
                {
                    known.push(came.clone());
                }
            }
        }
        if let Some(came) = self.came_mut().filter(|came| !came.is_empty()) {
            *came = goes;
            came.iter_mut().for_each(|it| it.noted = false);
        }
    }

    /// The pending removal, planned anew from the present state.
    pub(super) fn revert_again(&self) -> Result<Option<Doing>, Failure> {
        let (Some(entry), None, Target::Package(Doing::Remove { force, .. })) =
            (self.journal.receipt.entry(&self.change.path), &self.change.entry, &self.change.target)
        else {
            return Ok(None);
        };
        let seen = Observed::new(self.journal.root);
        let state = observe(seen.database()?, self.name);
        match revert(&seen, entry, &state, &BTreeSet::new(), *force) {
            Ok(Change { target: Target::Package(doing), .. }) => Ok(Some(doing)),
            Ok(_) => Ok(None),
            Err(Unchanged::Left(text)) => Err(text.into()),
            Err(_) => Ok(Some(Doing::Remove { names: Vec::new(), purge: Vec::new(), force: *force })),
        }
    }
}
