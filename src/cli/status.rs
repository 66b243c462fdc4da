use std::time::{Duration, UNIX_EPOCH};

use host::timestamp::Timestamp;
use printable::{counted, printable};
use reconcile::{Change, Finding, Pending, Resource};

use super::Outcome;
use super::changes::{difference, findings, found, notes};
use super::output::{BAD, GOOD, WARN, styled, wrapped};
use super::session::Session;
use super::table::{Cell, Columns};
use crate::daemon::report::Remark;
use crate::daemon::socket::Answer;
use crate::run::Phase;
use crate::status::{PinnedNow, Status};

pub(crate) fn run(session: &Session) -> anyhow::Result<Outcome> {
    let config = match session.config_in_force() {
        Ok(config) => config,
        // The end of the program is that of a wrong configuration, as with every command.
        Err(wrong) => {
            if let Ok(status) = Status::without_configuration(&session.root, format!("{wrong:#}")) {
                session.format.print(&status, || shown(session, &status))?;
            }
            return Err(wrong);
        }
    };
    let status = Status::read(&session.pipeline(&config)?)?;
    session.format.print(&status, || shown(session, &status))?;
    // The exit code is that of plan and apply with this configuration.
    if let Some(wrong) = status.wrong {
        return Err(wrong.into());
    }
    Ok(if status.needs_attention() { Outcome::Findings } else { Outcome::Done })
}

fn shown(session: &Session, status: &Status) -> String {
    let mut text = rows(session, status);
    let problem = status.problem.as_deref();
    text.extend(problem.map(|problem| format!("{} {}\n", styled(BAD, "problem:"), printable(problem))));
    text.extend(status.pinned.iter().map(pinned));
    text.extend(open(status).map(|(what, of)| findings(session, what, of)));
    text.extend(status.state.pending.iter().map(pending));
    if session.verbose {
        text.push_str(&found(session, &status.found));
    }
    text.push_str(&notes(&status.notes));
    text.extend(status.daemon.as_ref().map(daemon));
    text + &wrapped(end(status).trim_end())
}

fn open(status: &Status) -> [(&'static str, &[Finding]); 3] {
    [("contested", &status.contested), ("blocked", &status.blocked), ("left", &status.left)]
}

/// A line for each managed thing, and for each that would be.
fn rows(session: &Session, status: &Status) -> String {
    let mut columns = Columns::new(&["STATE", "PATH", "KIND", "WHY"]).only_wide(&[2]).shortened(&[3, 1]);
    let drift = |path: &Resource| status.drift.iter().find(|it| it.path == *path);
    for held in &status.state.receipt.entries {
        let among = |of: &[Finding]| of.iter().any(|it| it.path == held.path);
        let reason = held.reason.clone();
        let (state, why) = if let Some((what, _)) = open(status).iter().find(|(_, of)| among(of)) {
            (Cell::styled(*what, if *what == "left" { WARN } else { BAD }), reason)
        } else if let Some(change) = drift(&held.path) {
            (Cell::styled("differs", WARN), difference(change))
        } else if status.problem.is_some() {
            (Cell::styled("unknown", WARN), reason)
        } else {
            (Cell::styled("in sync", GOOD), reason)
        };
        columns.row([
            state,
            held.path.to_string().into(),
            held.managed.kind().to_string().into(),
            why.into(),
        ]);
    }
    if status.state.receipt.entries.is_empty() {
        return String::new();
    }
    // Before the first apply plan shows all.
    let is_shown = |change: &&Change| {
        status.state.phase() != Phase::Unmanaged
            && !status.state.receipt.entries.iter().any(|held| held.path == change.path)
    };
    for change in status.drift.iter().filter(is_shown) {
        let (path, kind) = (change.path.to_string(), change.kind.to_string());
        let state = Cell::styled("to apply", WARN);
        columns.row([state, path.into(), kind.into(), change.reason.clone().into()]);
    }
    columns.shown(session.format)
}

/// The whole in a sentence, and what to do.
fn end(status: &Status) -> String {
    let entries = &status.state.receipt.entries;
    let managed = match entries.len() {
        0 => "rocworker manages nothing here".to_owned(),
        n => counted(n, "managed path"),
    };
    let due = counted(status.drift.len(), "change");
    let first = if status.is_undecided { " once you have answered the first warning" } else { "" };
    let is_set_up = !entries.is_empty() && status.state.phase() != Phase::Unmanaged;
    match (is_set_up, status.needs_attention()) {
        (false, _) if status.problem.is_some() => format!("{managed}, and the desired state is unknown\n"),
        (false, _) if !status.drift.is_empty() => format!(
            "{managed}: apply would make {due}. rocworker plan shows what apply would change, rocworker apply makes \
             it{first}.\n"
        ),
        (false, false) if entries.is_empty() && !status.found.is_empty() => format!(
            "{managed}; {} {} already correct (-v), and undo leaves them\n",
            counted(status.found.len(), "file"),
            if status.found.len() == 1 { "is" } else { "are" },
        ),
        (false, false) if entries.is_empty() => format!("{managed}, and has nothing to do\n"),
        (_, false) => format!("{managed}, all in sync\n"),
        (_, true) if status.problem.is_some() => format!("{managed}, and the desired state is unknown\n"),
        (_, true) if !status.drift.is_empty() => {
            format!(
                "{managed}, and the machine is not in sync\nrocworker plan shows what differs, rocworker apply puts it \
                 right{first}\n"
            )
        }
        (_, true) if status.state.pending.is_empty() && open(status).iter().all(|(_, of)| of.is_empty()) => {
            format!("{managed}, all in sync, and the machine is not: what is named above keeps it so\n")
        }
        (_, true) => format!("{managed}, and the machine is not in sync\n"),
    }
}

fn daemon(answer: &Answer) -> String {
    let report = match answer {
        Answer::Silent { problem } => {
            return format!(
                "{} the daemon does not answer: {}\n",
                styled(WARN, "problem:"),
                printable(problem)
            );
        }
        Answer::Report(report) => report,
    };
    let does = match report.enforce {
        Some(true) => "keeps this machine so",
        Some(false) => "only reports (daemon.enforce: false)",
        None => "does nothing yet",
    };
    let mark = if report.needs_attention() { styled(BAD, "problem:") + " " } else { String::new() };
    let mut text = format!("{mark}the daemon {does}: {}\n", printable(&report.sentence()));
    if let Some(failing) = &report.failing {
        let since = at(failing.since);
        let again = failing.again.map_or_else(String::new, |again| format!(", again at {}", at(again)));
        text.push_str(&format!("  fails since {since}{again}\n"));
        text.extend(failing.what.iter().map(remark));
    }
    text.extend(report.contested.iter().map(|it| format!("  contested:{}", remark(it))));
    if let Some(until) = report.tags_held_until {
        text.push_str(&format!("  a worker keeps the tags of GPUs that have gone until {}\n", at(until)));
    }
    text.extend(
        report
            .sources
            .kernel
            .iter()
            .chain(&report.sources.files)
            .map(|why| format!("  {}\n", printable(why))),
    );
    text
}

fn at(seconds: u64) -> String {
    Timestamp::of(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
}

fn remark(remark: &Remark) -> String {
    let path = remark.path.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display()));
    format!("  {}\n", printable(&format!("{path}{}", remark.text)))
}

fn pending(pending: &Pending) -> String {
    let asked = pending.draining.as_ref().filter(|draining| draining.sent);
    let asked = asked.map_or("", |_| ": asked to end, and still at work");
    format!("{} {}{asked}\n", styled(WARN, "pending:"), pending.effect)
}

fn pinned(pinned: &PinnedNow) -> String {
    let partition = pinned.partition.map_or_else(String::new, |partition| format!(" partition {partition}"));
    let now = match (pinned.index, &pinned.render) {
        (Some(index), Some(render)) => format!("now GPU {index}, {}", render.display()),
        (Some(index), None) => format!("now GPU {index}, without a render node"),
        (None, _) => styled(BAD, "not there any more"),
    };
    format!("gpu-device-ids {} means {}{partition}: {now}\n", pinned.word, pinned.pci)
}
