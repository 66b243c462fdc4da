use std::time::{Duration, UNIX_EPOCH};

use reconcile::{Finding, Pending};

use super::Outcome;
use super::changes::{changes, findings, found, notes};
use super::output::{BAD, DIM, GOOD, WARN, styled};
use super::session::Session;
use super::table::{Cell, Columns};
use crate::daemon::report::Said;
use crate::daemon::socket::Answer;
use crate::printable::{counted, printable};
use crate::status::{ChosenNow, Status};
use crate::timestamp::Timestamp;

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
    Ok(if status.is_off() { Outcome::Findings } else { Outcome::Done })
}

fn shown(session: &Session, status: &Status) -> String {
    let root = &session.root;
    let mut text = String::new();
    let open = [("contested", &status.contested), ("blocked", &status.blocked), ("left", &status.left)];
    if !status.ours.is_empty() {
        let mut columns = Columns::new(&["MANAGED", "KIND", "STATE", "WHY"]);
        for held in &status.ours {
            let among = |of: &[Finding]| of.iter().any(|it| it.path == held.path);
            let state = if let Some((what, _)) = open.iter().find(|(_, of)| among(of)) {
                Cell::styled(*what, if *what == "left" { WARN } else { BAD })
            } else if status.drift.iter().any(|it| it.path == held.path) {
                Cell::styled("differs", WARN)
            } else if status.problem.is_some() {
                Cell::styled("not known", WARN)
            } else {
                Cell::styled("in sync", GOOD)
            };
            let path = held.path.shown(root);
            columns.row([path.into(), held.kind.to_string().into(), state, held.reason.clone().into()]);
        }
        text.push_str(&columns.to_string());
    }
    let problem = status.problem.as_deref().map(printable);
    text.extend(problem.map(|problem| format!("{} {problem}\n", styled(BAD, "!"))));
    text.extend(status.chosen.iter().map(chosen));
    if !status.drift.is_empty() {
        text.push_str(&format!("{}\n", styled(DIM, "rocworker apply would change")));
        text.push_str(&changes(root, &status.drift, session.verbose));
    }
    text.extend(open.map(|(what, of)| findings(root, what, of)));
    text.extend(status.pending.iter().map(pending));
    if session.verbose {
        text.push_str(&found(root, &status.found));
    }
    text.push_str(&notes(&status.notes));
    text.extend(status.daemon.as_ref().map(daemon));
    text.push_str(&match (status.ours.len(), status.is_off()) {
        (0, false) if !status.found.is_empty() => format!(
            "rocworker manages nothing here; {} {} already correct (-v), and undo leaves them\n",
            counted(status.found.len(), "file"),
            if status.found.len() == 1 { "is" } else { "are" },
        ),
        (0, false) => "rocworker manages nothing here, and has nothing to do\n".to_owned(),
        (n, false) => format!("{}, all in sync\n", counted(n, "managed path")),
        (n, true) if status.problem.is_some() => {
            format!("{}, and the desired state is unknown\n", counted(n, "managed path"))
        }
        (n, true) => format!("{}, and the machine is not in sync\n", counted(n, "managed path")),
    });
    text
}

fn daemon(answer: &Answer) -> String {
    let report = match answer {
        Answer::Silent { problem } => {
            return format!("{} the daemon does not answer: {}\n", styled(WARN, "!"), printable(problem));
        }
        Answer::Report(report) => report,
    };
    let does = if report.enforce { "keeps this machine so" } else { "only reports (daemon.enforce: false)" };
    let mark = if report.is_off() { styled(BAD, "!") + " " } else { String::new() };
    let mut text = format!("{mark}the daemon {does}: {}\n", printable(&report.sentence()));
    if let Some(failing) = &report.failing {
        let since = at(failing.since);
        let again = failing.again.map_or_else(String::new, |again| format!(", again at {}", at(again)));
        text.push_str(&format!("  fails since {since}{again}\n"));
        text.extend(failing.what.iter().map(said));
    }
    text.extend(report.contested.iter().map(|it| format!("  contested:{}", said(it))));
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

fn said(said: &Said) -> String {
    let path = said.path.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display()));
    format!("  {}\n", printable(&format!("{path}{}", said.text)))
}

fn pending(pending: &Pending) -> String {
    let asked = pending.draining.as_ref().filter(|draining| draining.sent);
    let asked = asked.map_or("", |_| ": asked to end, and still at work");
    format!("{} pending: {}{asked}\n", styled(WARN, "…"), pending.effect)
}

fn chosen(chosen: &ChosenNow) -> String {
    let partition = chosen.partition.map_or_else(String::new, |partition| format!(" partition {partition}"));
    let now = match (chosen.index, &chosen.render) {
        (Some(index), Some(render)) => format!("now GPU {index}, {}", render.display()),
        (Some(index), None) => format!("now GPU {index}, without a render node"),
        (None, _) => styled(BAD, "not there any more"),
    };
    format!("gpu-device-ids {} means {}{partition}: {now}\n", chosen.word, chosen.pci)
}
