//! Packages that go, and what becomes of those that were to go and stay.

use std::collections::BTreeSet;

use super::Made;
use crate::apt::{self, Hands, Simulated};
use crate::dpkg::Database;
use crate::observed::Observed;
use crate::plan::{After, Change, Doing, Target, Verdict, revert_package};
use crate::receipt::Ours;
use crate::work::Work;
use crate::{Came, Error, Step};

/// What apt would do beside taking these away: where somebody's package is half done, it would change that too.
fn more(simulated: &Simulated, names: &[String]) -> Made {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let comes = simulated.comes.iter().map(|(name, _)| name.as_str());
    let others: Vec<&str> = simulated.others(&names).into_iter().chain(comes).collect();
    if others.is_empty() {
        return Ok(());
    }
    Err(format!(
        "apt would change {} with it, which nobody asked for: see what apt-get remove {} says",
        others.join(", "),
        names.join(" ")
    ))
}

impl Work<'_> {
    pub(super) fn remove(
        &mut self,
        hands: &Hands,
        change: &Change,
        names: &[String],
        purge: &[String],
        now: u64,
        hear: &mut dyn FnMut(Step),
    ) -> Result<Made, Error> {
        let database = match Database::read(self.root()) {
            Ok(database) => database,
            Err(error) => return Ok(Err(error.to_string())),
        };
        // Some may have gone with a run that was killed.
        let is_known = |name: &&String| database.there(name).is_ok_and(|it| it.is_some());
        let names: Vec<String> = names.iter().filter(is_known).cloned().collect();
        let purge: Vec<String> = purge.iter().filter(is_known).cloned().collect();
        if names.is_empty() {
            self.end_change(change, now);
            return Ok(Ok(()));
        }
        let simulated = hands.simulate_remove(&names).and_then(|simulated| more(&simulated, &names));
        let until_now = self.receipt().clone();
        let automatic = apt::automatic(self.root()).unwrap_or_default();
        self.hand_over(change, &database, &names);
        self.begin_package(change, Vec::new(), now)?;
        let mut ran: Made = Ok(());
        let mut steps = vec![(&names, false)];
        match purge.len() {
            0 => {}
            count if count == names.len() => steps = vec![(&names, true)],
            _ => steps.push((&purge, true)),
        }
        for (names, purge) in steps {
            // Where apt does nothing before something else is put right, or would do more, or not with a package that was
            // unpacked in part, dpkg does this, which takes no more than it is told.
            ran = simulated.clone().and_then(|()| hands.remove(names, purge, hear));
            if ran.is_err() {
                ran = hands.remove_by_dpkg(names, purge, hear).or(ran);
            }
            if ran.is_err() {
                break;
            }
        }
        let after = match Database::read(self.root()) {
            Ok(after) => after,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let there = after.names();
        let left: Vec<&str> = names.iter().map(String::as_str).filter(|name| there.contains(*name)).collect();
        if let Err(error) = &mut ran {
            if let Err(text) = self.stay(hands, &left, &automatic) {
                error.push_str(&format!("; {text}"));
            }
            if left.len() == names.len() {
                self.take_back(until_now, change);
            } else {
                self.mark(hands, change, &BTreeSet::new());
            }
        }
        Ok(match ran {
            Ok(()) if left.is_empty() => {
                self.end_change(change, now);
                Ok(())
            }
            Ok(()) => Err(format!("apt says that they went, and dpkg still has {}", left.join(", "))),
            Err(error) => Err(error),
        })
    }

    /// What stays because something else of ours needs it goes with that from now on. What goes is kept apart from what
    /// stays: apt forgets what came for the sake of others before dpkg has removed it.
    fn hand_over(&mut self, change: &Change, database: &Database, names: &[String]) {
        if !matches!(change.after, After::Dropped) {
            return;
        }
        let (goes, stays): (Vec<Came>, Vec<Came>) =
            self.receipt().came(&change.path).iter().cloned().partition(|it| names.contains(&it.name));
        for came in stays {
            let going = names.iter().chain([&came.name]).cloned().collect();
            let needed = database.needed(&going);
            let Some(by) = needed.get(&came.name) else { continue };
            let others = self.receipt_mut().entries.iter_mut().filter(|entry| entry.path != change.path);
            for entry in others {
                if let Ours::Package { came: theirs, .. } = &mut entry.ours
                    && theirs.iter().any(|it| it.name == *by)
                    && !theirs.contains(&came)
                {
                    theirs.push(came.clone());
                }
            }
        }
        let entry = self.receipt_mut().entries.iter_mut().find(|entry| entry.path == change.path);
        if let Some(Ours::Package { came, begun }) = entry.map(|entry| &mut entry.ours)
            && !came.is_empty()
        {
            (*came, *begun) = (goes, true);
            came.iter_mut().for_each(|it| it.noted = false);
        }
    }

    /// What is to be taken away, as it stands now.
    pub(super) fn revert_again(&self, change: &Change) -> Option<Result<Doing, String>> {
        let entry = self.receipt().entry(&change.path).filter(|_| matches!(change.after, After::Dropped))?;
        let Target::Package(Doing::Remove { force, .. }) = change.target else { return None };
        let seen = Observed::new(self.root());
        let again = seen
            .look(&change.path)
            .and_then(|found| revert_package(&seen, entry, &found.state(), &BTreeSet::new(), force));
        match again {
            Ok(Verdict::Change(change)) => match change.target {
                Target::Package(doing) => Some(Ok(doing)),
                _ => None,
            },
            Ok(Verdict::Left(text)) => Some(Err(text)),
            Ok(_) => Some(Ok(Doing::Remove { names: Vec::new(), purge: Vec::new(), force })),
            Err(error) => Some(Err(error.to_string())),
        }
    }
}
