use std::path::{Path, PathBuf};

use anyhow::bail;
use config::Config;
use printable::{counted, printable};
use reconcile::{Note, Rehearsal};
use root::Attributes;

use super::Outcome;
use super::changes::{changes, findings, found, notes};
use super::options::Only;
use super::output::{BAD, DIM, styled, wrapped};
use super::session::{Misuse, Session, caller, callers_file};
use crate::partition::{Difference, differences};
use crate::run::{Planned, Saved};

/// More than a plan with the diffs of a megabyte of configuration has.
pub(crate) const LIMIT: usize = 64 << 20;

pub(crate) fn run(
    session: &Session,
    exit_code: bool,
    save: Option<&Path>,
    only: Option<Only>,
) -> anyhow::Result<Outcome> {
    let file = save.map(may_be_replaced).transpose()?;
    let config = session.config()?;
    let run = session.pipeline(&config)?;
    let mut planned = match only {
        None => run.rehearse(None, false)?,
        Some(Only::Exporter) => run.plan_exporter()?,
    };
    planned.notes.extend(of_modes(session, &config));
    if let Some(path) = file {
        let mut text = serde_json::to_vec_pretty(&planned)?;
        text.push(b'\n');
        // A plan can hold lines of files that only root reads.
        caller()?.write(path, &text, Attributes { mode: 0o600, owner: None })?;
    }
    session.format.print(&planned, || shown(session, &planned, save, only))?;
    let pending = !planned.plan.changes.is_empty() || !planned.effects.is_empty();
    Ok(match () {
        () if planned.is_undecided => Outcome::Undecided,
        () if exit_code && pending => Outcome::Findings,
        () => Outcome::Done,
    })
}

/// How cards differ from their modes: no apply switches one.
pub(crate) fn of_modes(session: &Session, config: &Config) -> Vec<Note> {
    let note = |it: Difference| Note { about: "partitions".to_owned(), text: it.text, problem: false };
    differences(&session.root, &config.partitions).into_iter().map(note).collect()
}

/// The path to save at: nothing is there, or an earlier plan, or an empty file.
fn may_be_replaced(file: &Path) -> anyhow::Result<PathBuf> {
    if file == Path::new("-") {
        return Err(Misuse("--save -: name a file; `rocworker plan -o json` prints the plan".into()).into());
    }
    let path = callers_file(file)?;
    match caller()?.read(&path, LIMIT) {
        Err(error) if error.is_not_found() => Ok(path),
        Ok(text) if text.is_empty() || Saved::parse(&text).is_ok() => Ok(path),
        _ => bail!(
            "{} exists and is no saved plan: name another file with --save, or remove it",
            path.display()
        ),
    }
}

/// The plan as people read it, and what to do with it. `file`: in which it is saved.
pub(crate) fn shown(session: &Session, planned: &Planned, file: Option<&Path>, only: Option<Only>) -> String {
    let file = match (file, only) {
        (Some(file), _) => format!(" {}", file.display()),
        (None, Some(Only::Exporter)) => " --only exporter".to_owned(),
        (None, None) => String::new(),
    };
    let command = printable(&format!("rocworker apply{file}"));
    let first = if planned.is_undecided { ", once you have answered the first warning" } else { "" };
    let end = match planned.plan.changes.len() {
        0 => "nothing to change\n".to_owned(),
        n => {
            format!(
                "{}: {command} makes {}{first}\n",
                counted(n, "change"),
                if n == 1 { "it" } else { "them" }
            )
        }
    };
    listed(session, planned) + &end
}

/// The changes, effects and findings of a plan, as text.
pub(crate) fn listed(session: &Session, planned: &Planned) -> String {
    let mut text = changes(session, &planned.plan.changes);
    if !planned.effects.is_empty() {
        let skipped = planned.skipped.map(|why| format!(" ({why})")).unwrap_or_default();
        text.push_str(&format!("{}\n", styled(DIM, format!("afterwards, once{skipped}"))));
        text.extend(planned.announced.iter().map(|effect| wrapped(&printable(effect))));
    }
    text.extend(planned.rehearsal.iter().map(rehearsed));
    let plan = &planned.plan;
    let open = [("blocked", &plan.blocked), ("contested", &plan.contested), ("left", &plan.left)];
    text.extend(open.map(|(what, of)| findings(session, what, of)));
    if session.verbose {
        text.push_str(&found(session, &planned.plan.found));
    }
    text + &notes(&planned.notes)
}

/// What apt would do, in apt's own words.
fn rehearsed(rehearsal: &Rehearsal) -> String {
    let mut text = format!("{}\n", styled(DIM, "apt would do"));
    text.extend(rehearsal.lines.iter().map(|line| format!("    {}\n", printable(line))));
    text.extend(
        rehearsal.problems.iter().map(|it| format!("{} {}\n", styled(BAD, "problem:"), printable(it))),
    );
    text
}
