//! Packages, as a plan wants them: simulated first, then into the receipt, then by apt.

mod by_installer;
mod came;
mod kept;
mod removing;

use std::collections::BTreeSet;

use crate::apt::{self, Hands, Simulated};
use crate::dpkg::{Database, Status};
use crate::plan::{After, Change, Doing};
use crate::receipt::{Ours, Receipt};
use crate::services::Came as CameOf;
use crate::settle::Settled;
use crate::work::Work;
use crate::{Came, Effect, Error, Outcome, State, Step, package};

use came::{came, came_with};

/// Whether a change was made, and why it was not.
type Made = Result<(), String>;

impl Work<'_> {
    /// The outer error is one of the receipt, the inner one of this change.
    pub(crate) fn make_package(
        &mut self,
        change: &Change,
        doing: &Doing,
        now: u64,
        hear: &mut dyn FnMut(Step),
    ) -> Result<Made, Error> {
        let Some(hands) = self.hands().cloned() else {
            return Ok(Err("packages come and go on the running machine only".to_owned()));
        };
        let was_begun = is_begun(self.receipt(), change);
        // What it could not put right is told if what follows fails for it.
        let half = hands.make_whole(self.root(), was_begun, &self.ours(change), hear).err();
        // What was planned was planned before that, and before what this run has installed until now, which may need
        // what was to go.
        let again = self.revert_again(change);
        let doing = match &again {
            Some(Ok(doing)) => doing,
            Some(Err(text)) => return Ok(Err(text.clone())),
            None => doing,
        };
        let stays = matches!(doing, Doing::Install { .. } | Doing::InstallBy { .. });
        if was_begun
            && stays
            && let Err(text) = self.keep(&hands, change)
        {
            return Ok(Err(text));
        }
        let made = match doing {
            Doing::Install { name, version } => {
                let unread = self.read_repositories(&hands)?;
                let made = self.install(&hands, change, (name, version.as_deref()), now, hear)?;
                made.map_err(|text| unread.map_or_else(|| text.clone(), |why| format!("{text}; {why}")))
            }
            Doing::InstallBy { name, installer } => {
                self.install_by(&hands, change, (name, installer), now, hear)?
            }
            Doing::Remove { names, purge, .. } => self.remove(&hands, change, names, purge, now, hear)?,
        };
        let half = half.filter(|half| made.as_ref().is_err_and(|text| !text.contains(half)));
        Ok(made
            .map_err(|text| half.map_or_else(|| text.clone(), |half| format!("{text}; before that: {half}"))))
    }

    /// The lists of repositories that are new: without them apt does not know what they offer. Why one of them could
    /// not be read.
    fn read_repositories(&mut self, hands: &Hands) -> Result<Option<String>, Error> {
        let mut unread = None;
        for pending in self.receipt().pending.clone() {
            let Effect::AptUpdate { source, uri, suite } = &pending.effect else { continue };
            // What could not be read for the package before is not tried again for this one.
            if let Some(failed) = self.settled().iter().find(|it| it.effect == pending.effect) {
                unread = Some(failed.text.clone());
                continue;
            }
            let CameOf::Ended(outcome, text) = apt::update(self.root(), hands, source, uri, suite) else {
                continue;
            };
            if outcome == Outcome::Done {
                self.receipt_mut().pending.retain(|it| it.effect != pending.effect);
                self.save()?;
            } else {
                unread = Some(text.clone());
            }
            self.settled_mut().push(Settled { effect: pending.effect, outcome, text });
        }
        Ok(unread)
    }

    fn install(
        &mut self,
        hands: &Hands,
        change: &Change,
        (name, version): (&str, Option<&str>),
        now: u64,
        hear: &mut dyn FnMut(Step),
    ) -> Result<Made, Error> {
        let before = match Database::read(self.root()) {
            Ok(before) => before,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if is_right(&before, name, version) {
            // Whoever was at it has come to the end meanwhile.
            if matches!(change.after, After::Held(_)) && self.receipt().entry(&change.path).is_none() {
                return Ok(Err("somebody else has installed it meanwhile: run it again".to_owned()));
            }
            self.end_change(change, now);
            return Ok(Ok(()));
        }
        let anew = before.is_half_installed(name);
        let simulated = match hands.simulate_install(name, version, anew) {
            Ok(simulated) => simulated,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(text) = other_than(&simulated, name).or_else(|| refusal(&simulated, &self.ours(change))) {
            return Ok(Err(text));
        }
        let until_now = self.receipt().clone();
        let was_begun = is_begun(self.receipt(), change);
        let came = simulated.comes.iter().map(|(name, version)| came(&before, name, version));
        self.begin_package(change, came.collect(), now)?;
        let ran = hands.install(name, version, anew, hear);
        let after = match Database::read(self.root()) {
            Ok(after) => after,
            Err(error) => return Ok(Err(error.to_string())),
        };
        // Somebody may have changed what is to be had in between, so that other packages came than were simulated.
        let known = before.names();
        let new: Vec<Came> =
            after.names().difference(&known).map(|it| came_with(&before, &after, it)).collect();
        let is_untouched = new.is_empty() && before.stanza(name) == after.stanza(name);
        if ran.is_err() && is_untouched {
            self.take_back(until_now, change);
            return Ok(ran);
        }
        self.receipt_mut().add_came(&change.path, new);
        self.receipt_mut().forget_missing(&change.path, &after);
        let known = if was_begun { BTreeSet::new() } else { known };
        self.mark(hands, change, &known);
        Ok(match ran {
            Ok(()) if is_right(&after, name, version) => {
                self.end_change(change, now);
                Ok(())
            }
            Ok(()) => Err(format!(
                "apt says that it was installed, and dpkg does not: see what dpkg -s {name} says"
            )),
            Err(error) => Err(error),
        })
    }

    fn begin_package(&mut self, change: &Change, came: Vec<Came>, now: u64) -> Result<(), Error> {
        if let After::Held(entry) = &change.after {
            self.receipt_mut().put((**entry).clone());
            self.receipt_mut().add_came(&change.path, came.clone());
            let mut change = change.clone();
            if let (After::Held(entry), Some(held)) = (&mut change.after, self.receipt().entry(&change.path))
            {
                **entry = held.clone();
            }
            return self.begin_change(&change, now);
        }
        let entry = self.receipt_mut().entries.iter_mut().find(|entry| entry.path == change.path);
        if let Some(Ours::Package { begun, .. }) = entry.map(|entry| &mut entry.ours) {
            *begun = true;
        }
        self.begin_change(change, now)
    }

    /// Names that may be replaced by other versions: they are ours.
    fn ours(&self, change: &Change) -> BTreeSet<String> {
        let entries = self.receipt().entries.iter();
        let came = entries.filter_map(|entry| match &entry.ours {
            Ours::Package { came, .. } => Some(came.iter().map(|it| it.name.clone())),
            _ => None,
        });
        let mut ours: BTreeSet<String> = came.flatten().collect();
        // One that is there in part is installed again.
        if matches!(change.from, State::Package { status, .. } if status != Status::Installed) {
            ours.extend(package::named(&change.path).map(str::to_owned));
        }
        ours
    }
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
fn refusal(simulated: &Simulated, ours: &BTreeSet<String>) -> Option<String> {
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

fn is_right(database: &Database, name: &str, version: Option<&str>) -> bool {
    let there = database.there(name).ok().flatten();
    there.is_some_and(|it| {
        it.status == Status::Installed && version.is_none_or(|version| version == it.version)
    })
}

fn is_begun(receipt: &Receipt, change: &Change) -> bool {
    let entry = receipt.entry(&change.path);
    entry.is_some_and(|entry| matches!(entry.ours, Ours::Package { begun: true, .. }))
}
