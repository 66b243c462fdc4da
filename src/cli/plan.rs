use std::path::Path;

use reconcile::Rehearsal;
use root::Attributes;

use super::Outcome;
use super::changes::{changes, findings, found, notes};
use super::output::{BAD, DIM, styled};
use super::session::{Session, caller, callers_file};
use crate::printable::{counted, printable};
use crate::run::Planned;

pub(crate) fn run(session: &Session, exit_code: bool, out: Option<&Path>) -> anyhow::Result<Outcome> {
    let config = session.config()?;
    let planned = session.pipeline(&config)?.plan(None)?;
    if let Some(path) = out {
        let mut text = serde_json::to_vec_pretty(&planned)?;
        text.push(b'\n');
        // It can hold lines of files that only root reads.
        caller()?.write(callers_file(path)?, &text, Attributes { mode: 0o600, owner: None })?;
    }
    session.format.print(&planned, || shown(session, &planned, out))?;
    let pending = !planned.plan.changes.is_empty() || !planned.effects.is_empty();
    Ok(if exit_code && pending { Outcome::Findings } else { Outcome::Done })
}

/// The plan as people read it.
pub(crate) fn shown(session: &Session, planned: &Planned, out: Option<&Path>) -> String {
    let root = &session.root;
    let mut text = changes(root, &planned.plan.changes, session.verbose);
    if !planned.effects.is_empty() {
        text.push_str(&format!("{}\n", styled(DIM, "then, once")));
        text.extend(planned.announced.iter().map(|effect| format!("> {effect}\n")));
    }
    text.extend(planned.rehearsal.iter().map(rehearsed));
    let plan = &planned.plan;
    let open = [("blocked", &plan.blocked), ("contested", &plan.contested), ("left", &plan.left)];
    text.extend(open.map(|(what, of)| findings(root, what, of)));
    if session.verbose {
        text.push_str(&found(root, &planned.plan.found));
    }
    text.push_str(&notes(&planned.notes));
    let command = out
        .map_or_else(|| "rocworker apply".to_owned(), |file| format!("rocworker apply {}", file.display()));
    text.push_str(&match planned.plan.changes.len() {
        0 => "nothing to change\n".to_owned(),
        n => format!("{}: {command} makes {}\n", counted(n, "change"), if n == 1 { "it" } else { "them" }),
    });
    text
}

/// In apt's own words.
fn rehearsed(rehearsal: &Rehearsal) -> String {
    let mut text = format!("{}\n", styled(DIM, "apt would do"));
    text.extend(rehearsal.lines.iter().map(|line| format!("    {}\n", printable(line))));
    text.extend(rehearsal.problems.iter().map(|it| format!("{} {}\n", styled(BAD, "!"), printable(it))));
    text
}
