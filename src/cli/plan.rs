use std::path::Path;

use reconcile::Rehearsal;
use root::Attributes;

use super::Outcome;
use super::changes::{changes, findings, found, notes};
use super::output::{BAD, DIM, styled};
use super::session::{Session, caller, callers_file};
use crate::printable::{counted, printable};
use crate::run::Planned;

pub(crate) fn run(session: &Session, exit_code: bool, save: Option<&Path>) -> anyhow::Result<Outcome> {
    let config = session.config()?;
    let planned = session.pipeline(&config)?.plan(None)?;
    if let Some(path) = save {
        let mut text = serde_json::to_vec_pretty(&planned)?;
        text.push(b'\n');
        // It can hold lines of files that only root reads.
        caller()?.write(callers_file(path)?, &text, Attributes { mode: 0o600, owner: None })?;
    }
    session.format.print(&planned, || shown(session, &planned, save))?;
    let pending = !planned.plan.changes.is_empty() || !planned.effects.is_empty();
    Ok(if exit_code && pending { Outcome::Findings } else { Outcome::Done })
}

/// The plan as people read it, and what to do with it. `file`: in which it is saved.
pub(crate) fn shown(session: &Session, planned: &Planned, file: Option<&Path>) -> String {
    let file = file.map_or_else(String::new, |file| format!(" {}", file.display()));
    let command = session.said(&format!("rocworker apply{file}"));
    let end = match planned.plan.changes.len() {
        0 => "nothing to change\n".to_owned(),
        n => format!("{}: {command} makes {}\n", counted(n, "change"), if n == 1 { "it" } else { "them" }),
    };
    listed(session, planned) + &end
}

/// What a plan has.
pub(crate) fn listed(session: &Session, planned: &Planned) -> String {
    let mut text = changes(session, &planned.plan.changes);
    if !planned.effects.is_empty() {
        text.push_str(&format!("{}\n", styled(DIM, "afterwards, once")));
        text.extend(planned.announced.iter().map(|effect| format!("{}\n", printable(effect))));
    }
    text.extend(planned.rehearsal.iter().map(rehearsed));
    let plan = &planned.plan;
    let open = [("blocked", &plan.blocked), ("contested", &plan.contested), ("left", &plan.left)];
    text.extend(open.map(|(what, of)| findings(session, what, of)));
    if session.verbose {
        text.push_str(&found(session, &planned.plan.found));
    }
    text + &notes(session, &planned.notes)
}

/// In apt's own words.
fn rehearsed(rehearsal: &Rehearsal) -> String {
    let mut text = format!("{}\n", styled(DIM, "apt would do"));
    text.extend(rehearsal.lines.iter().map(|line| format!("    {}\n", printable(line))));
    text.extend(
        rehearsal.problems.iter().map(|it| format!("{} {}\n", styled(BAD, "problem:"), printable(it))),
    );
    text
}
