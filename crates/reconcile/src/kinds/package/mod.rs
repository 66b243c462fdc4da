//! A package of the machine's distribution that should be there or not. apt simulates each change first; what it would
//! bring is in the receipt before it comes.

mod install;
mod job;
mod remove;

use std::collections::BTreeSet;

use super::case::{Case, Observed, Planned, Unchanged};
use crate::apt::Step;
use crate::apt::dpkg::{self, Database, Status, compare};
pub(super) use crate::apt::fetch::sweep;
use crate::model::{
    Came, Change, Doing, Entry, Managed, Package, Repairs, Resource, State, Target, Verb, Want,
};
use crate::receipt::{Failure, Journal};

use job::Job;

pub(super) fn observe(database: &Database, name: &str) -> State {
    let there = database.there(name);
    there.map_or(State::Absent, |it| State::Package { version: it.version.clone(), status: it.status })
}

pub(super) fn plan(case: &Case<'_>, wanted: &Package) -> Planned {
    let Case { seen, action, held, .. } = *case;
    let from = case.found.state();
    // A removed package should be there again, or an installed one should go: that is a revert.
    let is_back = |entry: &&Entry| is_there(&entry.before) == matches!(wanted.want, Want::Present { .. });
    if let Some(entry) = held.filter(is_back) {
        return revert(seen, entry, &from, &BTreeSet::new(), false).map_err(|unchanged| match unchanged {
            Unchanged::Left(text) => Unchanged::Blocked(text),
            other => other,
        });
    }
    if wanted.installer.is_some() && held.is_none() && is_there(&from) {
        return Err(Unchanged::Blocked(format!(
            "{from} is there, which rocworker did not install, nor what it has installed: apt-get purge {} and \
             apply again, or rocm.install: keep in the configuration",
            wanted.name
        )));
    }
    let unless_held = || {
        let database = seen.database().map_err(|error| error.to_string())?;
        match database.there(&wanted.name) {
            Some(it) if it.is_on_hold => {
                Err(format!("it is on hold: apt-mark unhold {}, then apply again", wanted.name))
            }
            _ => Ok(()),
        }
    };
    let Want::Present { version } = &wanted.want else {
        if !is_there(&from) {
            return Err(Unchanged::InSync);
        }
        unless_held()?;
        let entry = entry(case, case.repairs()?);
        let names = vec![wanted.name.clone()];
        let target = Target::Package(Doing::Remove { names, purge: Vec::new(), force: false });
        return Ok(Change::forward(action, Verb::Remove, (from, State::Absent), target, entry));
    };
    let version = version.as_ref();
    let begun = held.filter(|entry| entry.managed.is_begun());
    let repairs = held.map_or_else(Repairs::default, |entry| entry.repairs);
    match (&from, version) {
        (State::Package { version: there, status: Status::Installed }, Some(version)) if there != version => {
            if compare(there, version).is_gt() {
                return Err(Unchanged::Blocked(format!(
                    "{there} is there, which is newer than {version}, and rocworker never installs an older one: name \
                     {there} in the configuration, or name no version"
                )));
            }
            if held.is_none() {
                return Err(Unchanged::Blocked(format!(
                    "{there} is there, which rocworker did not install, and {version} is asked for: apt-get install \
                     {}={version}, or name no version in the configuration",
                    wanted.name
                )));
            }
            unless_held()?;
            Ok(install(case, wanted, Some(version), Verb::Replace, repairs))
        }
        // An installation that a killed run has begun is recorded as ended by the next run.
        (State::Package { status: Status::Installed, .. }, version) => {
            begun.map(|_| install(case, wanted, version, Verb::Create, repairs)).ok_or(Unchanged::InSync)
        }
        (from, version) if is_there(from) => Ok(install(case, wanted, version, Verb::Repair, repairs)),
        (_, version) => {
            let verb = if held.is_some() && begun.is_none() { Verb::Repair } else { Verb::Create };
            Ok(install(case, wanted, version, verb, case.repairs()?))
        }
    }
}

fn install(
    case: &Case<'_>,
    wanted: &Package,
    version: Option<&String>,
    verb: Verb,
    repairs: Repairs,
) -> Change {
    let from = case.found.state();
    let doing = match wanted.installer.clone() {
        Some(installer) => Doing::InstallBy(installer),
        None => Doing::Install { version: version.cloned() },
    };
    let to = match (version, &from) {
        (Some(version), _) => version.clone(),
        (None, State::Package { version, status }) if *status != Status::ConfigFiles => version.clone(),
        // Which one apt takes is seen once its lists are there.
        _ => "the one that is to be had".to_owned(),
    };
    let to = State::Package { version: to, status: Status::Installed };
    Change::forward(case.action, verb, (from, to), Target::Package(doing), entry(case, repairs))
}

fn entry(case: &Case<'_>, repairs: Repairs) -> Entry {
    let came = case.held.map(|entry| entry.managed.came().to_vec()).unwrap_or_default();
    let before = case.held.map_or_else(|| case.found.state(), |entry| entry.before.clone());
    Entry::of(case.action, before, Managed::Package { came, begun: true }, repairs)
}

/// Whether the package is there, wholly or in part.
fn is_there(state: &State) -> bool {
    matches!(state, State::Package { status, .. } if *status != Status::ConfigFiles)
}

pub(super) fn apply(
    journal: &mut Journal<'_>,
    change: &Change,
    doing: &Doing,
    now: u64,
    hear: &mut dyn FnMut(Step),
) -> Result<(), Failure> {
    let Resource::Package(name) = &change.path else {
        return Err(format!("{} is no package", change.path).into());
    };
    let manager = journal.manager("packages come and go")?;
    let mut job = Job { journal, manager, change, name, now, hear };
    let was_begun = job.is_begun();
    // If a later step fails, what is still half done is part of the error.
    let half = job.manager.make_whole(job.journal.root, was_begun, &job.managed(), job.hear).err();
    // The plan is older than the repair and than this run's other installations, which may need packages that
    // the plan removes.
    let again = job.revert_again()?;
    let doing = again.as_ref().unwrap_or(doing);
    if was_begun && !matches!(doing, Doing::Remove { .. }) {
        job.keep()?;
    }
    let made = match doing {
        Doing::Install { version } => {
            let unread = job.read_repositories()?;
            job.install(version.as_deref()).map_err(|failure| failure.with(unread.as_deref()))
        }
        Doing::InstallBy(installer) => job.install_by(installer),
        Doing::Remove { names, purge, .. } => job.remove(names, purge),
    };
    made.map_err(|failure| match half {
        Some(half) if !failure.says(&half) => failure.with(Some(&format!("before that: {half}"))),
        _ => failure,
    })
}

/// `going`: packages that entries before this one remove already.
pub(super) fn revert(
    seen: &Observed<'_>,
    entry: &Entry,
    from: &State,
    going: &BTreeSet<String>,
    force: bool,
) -> Planned {
    let (Managed::Package { came, begun }, Resource::Package(name)) = (&entry.managed, &entry.path) else {
        return Err(Unchanged::Gone);
    };
    if let State::Package { version, .. } = &entry.before
        && is_there(&entry.before)
    {
        let version = match from {
            // A run that was killed has left it, in whole or in part.
            State::Package { version, .. } if is_there(from) && *begun => version,
            // rocworker removed it. A person has installed it again, in whatever version, and keeps it.
            _ if is_there(from) => return Err(Unchanged::Gone),
            _ => version,
        };
        let target = Target::Package(Doing::Install { version: Some(version.clone()) });
        let to = State::Package { version: version.clone(), status: Status::Installed };
        return Ok(Change::back(entry, Verb::Restore, (from.clone(), to), target));
    }
    let unseen = |error: dpkg::Error| Unchanged::Left(error.to_string());
    let database = seen.database().map_err(unseen)?;
    let automatic = seen.automatic().map_err(unseen)?;
    let mut managed: BTreeSet<String> = BTreeSet::new();
    let mut left: Vec<String> = Vec::new();
    let mut is_kept = false;
    for Came { name: it, had_configuration, asked, noted, .. } in came {
        let Some(there) = database.there(it) else { continue };
        // A killed run may have ended before it marked what it installed.
        let has_mark = *noted || !begun;
        let is_manual = it != name && has_mark && !asked && !automatic.contains(it) && !force;
        match there.status {
            Status::ConfigFiles if *had_configuration => {}
            Status::ConfigFiles => drop(managed.insert(it.clone())),
            _ if there.is_on_hold => {
                is_kept |= it == name;
                left.push(format!("{it} stays, which is on hold (apt-mark unhold {it})"));
            }
            _ if is_manual => {
                left.push(format!("{it} stays, which is marked as installed by hand (apt-mark auto {it})"))
            }
            _ => drop(managed.insert(it.clone())),
        }
    }
    let all = managed.union(going).cloned().collect();
    let needed = database.needed(&all);
    is_kept |= needed.contains_key(name);
    for (it, by) in &needed {
        if managed.remove(it) {
            left.push(format!("{it} stays, which {by} needs"));
        }
    }
    // A run that was killed may have left an apt that has not come to its end: that is waited for before it is believed.
    let has_gone = managed.is_empty() && !begun;
    if has_gone && left.is_empty() {
        return Err(Unchanged::Gone);
    }
    if is_kept {
        return Err(Unchanged::Left(format!("{}: that first, then run this again", left.join("; "))));
    }
    if has_gone {
        // The package itself has gone, and what came with it is no longer managed.
        return Err(Unchanged::GoneBut(format!("{name} has gone; {}", left.join("; "))));
    }
    let had_configuration = |it: &String| came.iter().any(|came| came.had_configuration && came.name == *it);
    let mut purge = Vec::new();
    for it in &managed {
        let changed = if force { Vec::new() } else { database.changed_conffiles(seen.root, it) };
        if let Some(path) = changed.first() {
            left.push(format!("{} stays, which was changed", path.display()));
        } else if !had_configuration(it) {
            purge.push(it.clone());
        }
    }
    let names: Vec<String> = managed.into_iter().collect();
    let others: Vec<&str> = names.iter().map(String::as_str).filter(|it| it != name).collect();
    let mut reason = "it was not there before".to_owned();
    if !others.is_empty() {
        reason.push_str(&format!(", nor was what came with it: {}", others.join(", ")));
    }
    left.insert(0, reason);
    let target = Target::Package(Doing::Remove { names, purge, force });
    let change = Change::back(entry, Verb::Remove, (from.clone(), entry.before.clone()), target);
    Ok(Change { reason: left.join("; "), ..change })
}

#[cfg(test)]
mod tests {
    use root::{Attributes, Root};

    use super::*;

    use crate::model::{Action, Found, Kind};

    /// The plan for an unmanaged package of version 2 for which dpkg has this status.
    fn planned(status: &str, wanted: Package) -> String {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let stanza = format!("Package: tool\nStatus: {status}\nArchitecture: all\nVersion: 2\n\n");
        let text = if status.is_empty() { "" } else { &stanza };
        root.write(dpkg::STATUS, text.as_bytes(), Attributes { mode: 0o644, owner: None }).unwrap();
        let seen = Observed::new(&root);
        let action = Action::package(wanted, "");
        let found = Found::Else(observe(seen.database().unwrap(), "tool"));
        let Kind::Package(wanted) = &action.kind else { unreachable!() };
        match plan(&Case { seen: &seen, action: &action, found: &found, held: None, now: 0 }, wanted) {
            Ok(change) => format!("{:?} {} → {}", change.change, change.from, change.to),
            Err(Unchanged::InSync) => "in sync".to_owned(),
            Err(Unchanged::Blocked(text)) => text,
            Err(other) => format!("{other:?}"),
        }
    }

    #[test]
    fn a_package_is_planned_by_what_dpkg_says_of_it() {
        let (present, absent) = (|| Package::present("tool"), || Package::absent("tool"));
        let exactly = |version| Package::exactly("tool", version);
        for (status, wanted, expected) in [
            ("", present(), "Create nothing → the one that is to be had"),
            ("", exactly("3"), "Create nothing → 3"),
            ("", absent(), "in sync"),
            ("install ok installed", present(), "in sync"),
            ("install ok installed", exactly("2"), "in sync"),
            ("install ok installed", exactly("1"), "2 is there, which is newer than 1"),
            ("install ok installed", exactly("3"), "2 is there, which rocworker did not install"),
            ("install ok half-configured", present(), "Repair 2, half-configured → 2"),
            ("deinstall ok config-files", present(), "Create 2, config-files → the one that is to be had"),
            ("deinstall ok config-files", absent(), "in sync"),
            ("install ok installed", absent(), "Remove 2 → nothing"),
            ("hold ok installed", absent(), "it is on hold: apt-mark unhold tool"),
        ] {
            let planned = planned(status, wanted.clone());
            assert!(planned.starts_with(expected), "{status:?} {wanted:?}: {planned}");
        }
    }
}
