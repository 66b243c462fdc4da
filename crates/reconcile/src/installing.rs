//! Packages, as a plan wants them: simulated first, then into the receipt, then by apt.

mod by_installer;

use std::collections::BTreeSet;

use crate::apt::{self, Hands, Simulated};
use crate::dpkg::{Database, Status};
use crate::plan::{After, Change, Doing, Target, Verdict, bare, revert_package};
use crate::receipt::{Ours, Receipt};
use crate::services::Came as CameOf;
use crate::settle::Settled;
use crate::state::Found;
use crate::work::Work;
use crate::{Came, Effect, Error, Outcome, State, Step, package};

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
        let half = hands.make_whole(self.root(), was_begun, hear).err();
        // What was planned was planned before that, and before what this run has installed until now, which may need
        // what was to go.
        let again = self.revert_again(change);
        let doing = match &again {
            Some(Ok(doing)) => doing,
            Some(Err(text)) => return Ok(Err(text.clone())),
            None => doing,
        };
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
        let simulated = match hands.simulate_install(name, version) {
            Ok(simulated) => simulated,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(text) = refusal(&simulated, &self.ours(change)) {
            return Ok(Err(text));
        }
        let until_now = self.receipt().clone();
        let was_begun = is_begun(self.receipt(), change);
        let came = simulated.comes.iter().map(|(name, version)| came(&before, name, version));
        self.begin_package(change, came.collect(), now)?;
        let ran = hands.install(name, version, hear);
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

    /// What came for its sake, and what apt has not noted as such: a run that was killed may end before it does.
    /// `known`: what was there before, and what somebody may have marked otherwise since. What has been noted once
    /// is never marked again.
    fn mark(&mut self, hands: &Hands, change: &Change, known: &BTreeSet<String>) {
        let automatic = apt::automatic(self.root()).unwrap_or_default();
        let itself = package::named(&change.path);
        let is_open = |it: &&Came| !it.noted && !it.asked && itself != Some(it.name.as_str());
        let came = self.receipt().came(&change.path).iter().filter(is_open).map(|it| it.name.as_str());
        let others: Vec<&str> = came.filter(|it| !automatic.contains(*it) && !known.contains(*it)).collect();
        // Where it does not work, undo leaves them and says so.
        hands.mark_automatic(&others).ok();
        self.note_marks(change);
    }

    /// Keeps which of those that came apt has noted as such.
    fn note_marks(&mut self, change: &Change) {
        let automatic = apt::automatic(self.root()).unwrap_or_default();
        for it in self.receipt_mut().came_mut(&change.path) {
            it.noted |= automatic.contains(bare(&it.name));
        }
    }

    fn remove(
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
        let simulated = hands.simulate_remove(&names);
        if let Ok(simulated) = &simulated {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let others: Vec<&str> = simulated
                .others(&names)
                .into_iter()
                .chain(simulated.comes.iter().map(|(name, _)| name.as_str()))
                .collect();
            if !others.is_empty() {
                return Ok(Err(format!(
                    "apt would change {} with it, which nobody asked for: see what apt-get remove {} says",
                    others.join(", "),
                    names.join(" ")
                )));
            }
        }
        let until_now = self.receipt().clone();
        self.hand_over(change, &database, &names);
        self.begin_package(change, Vec::new(), now)?;
        let mut ran = Ok(());
        let mut steps = vec![(&names, false)];
        match purge.len() {
            0 => {}
            count if count == names.len() => steps = vec![(&names, true)],
            _ => steps.push((&purge, true)),
        }
        for (names, purge) in steps {
            // Where apt does nothing before something else is put right, or not with a package that was unpacked in part,
            // dpkg does this, which takes no more than it is told.
            ran = simulated.clone().and_then(|_| hands.remove(names, purge, hear));
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
        if ran.is_err() && left.len() == names.len() {
            self.take_back(until_now, change);
        } else if ran.is_err() {
            // apt has forgotten of what is left for whose sake it came.
            self.mark(hands, change, &BTreeSet::new());
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
    fn revert_again(&self, change: &Change) -> Option<Result<Doing, String>> {
        let entry = self.receipt().entry(&change.path).filter(|_| matches!(change.after, After::Dropped))?;
        let Target::Package(Doing::Remove { force, .. }) = change.target else { return None };
        let again = Found::look(self.root(), &change.path)
            .and_then(|found| revert_package(self.root(), entry, &found.state(), &BTreeSet::new(), force));
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

fn came(before: &Database, name: &str, version: &str) -> Came {
    let had = before.there(name).ok().flatten();
    let had_configuration = had.is_some_and(|it| it.status == Status::ConfigFiles);
    Came { name: name.to_owned(), version: version.to_owned(), had_configuration, asked: false, noted: false }
}

fn came_with(before: &Database, after: &Database, name: &str) -> Came {
    let version = after.there(name).ok().flatten().map(|it| it.version).unwrap_or_default();
    came(before, name, &version)
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

impl Receipt {
    /// What came with a package, as far as it is ours.
    pub(crate) fn came(&self, path: &std::path::Path) -> &[Came] {
        match self.entry(path).map(|entry| &entry.ours) {
            Some(Ours::Package { came, .. }) => came,
            _ => &[],
        }
    }

    fn came_mut(&mut self, path: &std::path::Path) -> &mut [Came] {
        let entry = self.entries.iter_mut().find(|entry| entry.path == path);
        match entry.map(|entry| &mut entry.ours) {
            Some(Ours::Package { came, .. }) => came,
            _ => &mut [],
        }
    }

    /// What was to come and is not there, though apt has come to its end, is not ours if it comes one day.
    pub(crate) fn forget_missing(&mut self, path: &std::path::Path, after: &Database) {
        let entry = self.entries.iter_mut().find(|entry| entry.path == path);
        if let Some(Ours::Package { came, .. }) = entry.map(|entry| &mut entry.ours) {
            came.retain(|it| after.there(&it.name).ok().is_none_or(|there| there.is_some()));
        }
    }

    /// Adds to what came with a package; one that is known is in this version now.
    pub(crate) fn add_came(&mut self, path: &std::path::Path, new: Vec<Came>) {
        let entry = self.entries.iter_mut().find(|entry| entry.path == path);
        let Some(Ours::Package { came, .. }) = entry.map(|entry| &mut entry.ours) else { return };
        for it in new {
            match came.iter_mut().find(|known| known.name == it.name) {
                Some(known) => known.version = it.version,
                None => came.push(it),
            }
        }
    }
}
