//! A package that should be there or not, and the way back of one.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::change::{Change, Doing, Target, Verb};
use super::{Verdict, contested};
use crate::dpkg::{Database, Selection, Status, compare};
use crate::observed::Observed;
use crate::receipt::{Entry, Ours, Repairs};
use crate::state::{Found, Unseen};
use crate::{Action, Came, Package, State, Want, package};

pub(super) fn plan(
    seen: &Observed<'_>,
    action: &Action,
    wanted: &Package,
    found: &Found,
    held: Option<&Entry>,
    now: u64,
) -> Result<Verdict, String> {
    let from = found.state();
    let is_there = is_there(&from);
    // What we took away should be there again, or what we installed should go: that is the way back.
    if let Some(entry) =
        held.filter(|entry| is_there_before(entry) == matches!(wanted.want, Want::Present { .. }))
    {
        let verdict =
            revert(seen, entry, &from, &BTreeSet::new(), false).map_err(|error| error.to_string())?;
        return match verdict {
            Verdict::Left(text) => Err(text),
            Verdict::Gone if is_there == is_there_before(entry) => Ok(Verdict::Gone),
            verdict => Ok(verdict),
        };
    }
    let is_held = |database: &Database| {
        database.there(&wanted.name).is_ok_and(|it| it.is_some_and(|it| it.selection == Selection::Hold))
    };
    if wanted.installer.is_some() && held.is_none() && is_there {
        return Err(format!(
            "{from} is there, which somebody else has installed, and so is whatever it has installed: apt-get purge {} and \
             apply again, or rocm.install: keep in the configuration",
            wanted.name
        ));
    }
    let database = || seen.database().map_err(|error| error.to_string());
    match (&wanted.want, &from) {
        (Want::Absent, _) if !is_there => Ok(Verdict::Right),
        (Want::Absent, _) => {
            if is_held(database()?) {
                return Err(format!("it is on hold: apt-mark unhold {}, then apply again", wanted.name));
            }
            let mut entry = entry(action, held, &from);
            entry.repairs = match repaired(held, now) {
                Some(repairs) => repairs,
                None => return Ok(contested(action, entry.repairs, found)),
            };
            let names = vec![wanted.name.clone()];
            let doing = Doing::Remove { names, purge: Vec::new(), force: false };
            let change = Change::forward(action, Verb::Remove, from, State::Absent, entry);
            Ok(changed(change, doing, State::Absent))
        }
        // What a killed run has begun is noted as ended by the next.
        (Want::Present { version }, State::Package { version: there, status: Status::Installed })
            if held.is_some_and(is_begun) && version.as_ref().is_none_or(|version| version == there) =>
        {
            Ok(install(action, wanted, version.as_ref(), held, from.clone(), Verb::Create))
        }
        (Want::Present { version: None }, State::Package { status: Status::Installed, .. }) => {
            Ok(Verdict::Right)
        }
        (
            Want::Present { version: Some(version) },
            State::Package { version: there, status: Status::Installed },
        ) if version == there => Ok(Verdict::Right),
        (
            Want::Present { version: Some(version) },
            State::Package { version: there, status: Status::Installed },
        ) => match (compare(there, version), held) {
            (Ordering::Greater, _) => Err(format!(
                "{there} is there, which is newer than {version}, and nothing is ever put back to an older one: name \
                     {there} in the configuration, or name no version"
            )),
            (_, None) => Err(format!(
                "{there} is there, which somebody else has installed, and {version} is asked for: apt-get install \
                     {}={version}, or name no version in the configuration",
                wanted.name
            )),
            (_, Some(_)) if is_held(database()?) => {
                Err(format!("it is on hold: apt-mark unhold {}, then apply again", wanted.name))
            }
            (_, Some(_)) => Ok(install(action, wanted, Some(version), held, from, Verb::Replace)),
        },
        (Want::Present { version }, State::Package { .. }) if is_there => {
            Ok(install(action, wanted, version.as_ref(), held, from, Verb::Repair))
        }
        (Want::Present { version }, _) => {
            let (verb, repairs) = match held {
                Some(entry) if !is_begun(entry) => match repaired(held, now) {
                    Some(repairs) => (Verb::Repair, repairs),
                    None => return Ok(contested(action, entry.repairs, found)),
                },
                held => (Verb::Create, held.map_or_else(Repairs::default, |entry| entry.repairs)),
            };
            let mut verdict = install(action, wanted, version.as_ref(), held, from, verb);
            if let Verdict::Change(change) = &mut verdict {
                change.repaired(repairs);
            }
            Ok(verdict)
        }
    }
}

fn install(
    action: &Action,
    wanted: &Package,
    version: Option<&String>,
    held: Option<&Entry>,
    from: State,
    verb: Verb,
) -> Verdict {
    let version = version.cloned();
    let name = wanted.name.clone();
    let doing = match wanted.installer.clone() {
        Some(installer) => Doing::InstallBy { name, installer },
        None => Doing::Install { name, version: version.clone() },
    };
    let to = match (&version, &from) {
        (Some(version), _) => version.clone(),
        (None, State::Package { version, status }) if *status != Status::ConfigFiles => version.clone(),
        // Which one apt takes is seen once its lists are there.
        _ => "the one that is to be had".to_owned(),
    };
    let to = State::Package { version: to, status: Status::Installed };
    let change = Change::forward(action, verb, from.clone(), to.clone(), entry(action, held, &from));
    changed(change, doing, to)
}

fn changed(change: Change, doing: Doing, to: State) -> Verdict {
    Verdict::Change(Box::new(change.to(Target::Package(doing), to, None)))
}

fn entry(action: &Action, held: Option<&Entry>, from: &State) -> Entry {
    let came = match held.map(|entry| &entry.ours) {
        Some(Ours::Package { came, .. }) => came.clone(),
        _ => Vec::new(),
    };
    Entry {
        path: action.path.clone(),
        stage: action.stage,
        reason: action.reason.clone(),
        before: held.map_or_else(|| from.clone(), |entry| entry.before.clone()),
        ours: Ours::Package { came, begun: true },
        effects: action.effects_back().to_vec(),
        concern: action.concern.clone(),
        uses: action.uses.clone(),
        rival: action.rival.clone(),
        repairs: held.map_or_else(Repairs::default, |entry| entry.repairs),
        mount: None,
    }
}

/// What we did to it was undone by somebody, unless a run was killed before it was done.
fn repaired(held: Option<&Entry>, now: u64) -> Option<Repairs> {
    match held {
        None => Some(Repairs::default()),
        Some(entry) if is_begun(entry) => Some(entry.repairs),
        Some(entry) => entry.repairs.one_more(now),
    }
}

fn is_begun(entry: &Entry) -> bool {
    matches!(entry.ours, Ours::Package { begun: true, .. })
}

fn is_there_before(entry: &Entry) -> bool {
    is_there(&entry.before)
}

/// In whole or in part.
fn is_there(state: &State) -> bool {
    matches!(state, State::Package { status, .. } if *status != Status::ConfigFiles)
}

/// `going`: packages that entries before this one take away already.
pub(crate) fn revert(
    seen: &Observed<'_>,
    entry: &Entry,
    from: &State,
    going: &BTreeSet<String>,
    force: bool,
) -> Result<Verdict, Unseen> {
    let Ours::Package { came, begun } = &entry.ours else { return Ok(Verdict::Gone) };
    let name = package::named(&entry.path).unwrap_or_default();
    if let State::Package { version, .. } = &entry.before
        && is_there_before(entry)
    {
        let version = match from {
            // A run that was killed has left it, in whole or in part.
            State::Package { version, .. } if is_there(from) && *begun => version,
            // By our hand it went. Who has installed it again, in whatever version, has it.
            _ if is_there(from) => return Ok(Verdict::Gone),
            _ => version,
        };
        let doing = Doing::Install { name: name.to_owned(), version: Some(version.clone()) };
        let to = State::Package { version: version.clone(), status: Status::Installed };
        let change = Change::back(entry, Verb::Restore, from.clone(), Target::Package(doing.clone()));
        return Ok(changed(change, doing, to));
    }
    let (database, automatic) = (seen.database()?, seen.automatic()?);
    let mut ours: BTreeSet<String> = BTreeSet::new();
    let mut left: Vec<String> = Vec::new();
    let mut is_kept = false;
    for Came { name: it, had_configuration, asked, noted, .. } in came {
        // What a killed run left may not have come to its mark.
        let has_mark = *noted || !begun;
        let is_somebodys = it != name && has_mark && !asked && !automatic.contains(it) && !force;
        let there = database.there(it)?;
        let is_held = there.as_ref().is_some_and(|there| there.selection == Selection::Hold);
        match there.map(|there| there.status) {
            None => {}
            Some(Status::ConfigFiles) if *had_configuration => {}
            Some(Status::ConfigFiles) => {
                ours.insert(it.clone());
            }
            Some(_) if is_held => {
                is_kept |= it == name;
                left.push(format!("{it} stays, which is on hold (apt-mark unhold {it})"));
            }
            Some(_) if is_somebodys => {
                left.push(format!(
                    "{it} stays, which somebody has marked as installed by hand (apt-mark auto {it})"
                ));
            }
            Some(_) => {
                ours.insert(it.clone());
            }
        }
    }
    let all = ours.union(going).cloned().collect();
    let needed = database.needed(&all);
    is_kept |= needed.contains_key(name);
    for (it, by) in &needed {
        if ours.remove(it) {
            left.push(format!("{it} stays, which {by} needs"));
        }
    }
    // A run that was killed may have left an apt that has not come to its end: that is waited for before it is believed.
    if ours.is_empty() && !begun {
        return Ok(if left.is_empty() { Verdict::Gone } else { stays(name, left, is_kept) });
    }
    if is_kept {
        return Ok(stays(name, left, true));
    }
    let had: BTreeSet<&str> =
        came.iter().filter(|came| came.had_configuration).map(|came| came.name.as_str()).collect();
    let mut purge = Vec::new();
    for it in &ours {
        let changed = if force { Vec::new() } else { database.changed_conffiles(seen.root, it) };
        match changed.first() {
            Some(path) => left.push(format!("{} stays, which somebody has changed", path.display())),
            None if !had.contains(it.as_str()) => purge.push(it.clone()),
            None => {}
        }
    }
    let doing = Doing::Remove { names: ours.into_iter().collect(), purge, force };
    let mut change = Change::back(entry, Verb::Remove, from.clone(), Target::Package(doing.clone()));
    if let Doing::Remove { names, .. } = &doing {
        change.reason = reason(name, names, &left);
    }
    Ok(changed(change, doing, entry.before.clone()))
}

fn stays(name: &str, left: Vec<String>, is_needed: bool) -> Verdict {
    let text = left.join("; ");
    if is_needed {
        Verdict::Left(format!("{text}: that first, then run this again"))
    } else {
        // It has gone itself, and what came with it is somebody else's by now.
        Verdict::GoneBut(format!("{name} has gone; {text}"))
    }
}

fn reason(name: &str, names: &[String], left: &[String]) -> String {
    let others: Vec<&str> = names.iter().map(String::as_str).filter(|it| *it != name).collect();
    let with = match others.as_slice() {
        [] => "it was not there before".to_owned(),
        others => format!("it was not there before, nor was what came with it: {}", others.join(", ")),
    };
    if left.is_empty() { with } else { format!("{with}; {}", left.join("; ")) }
}
