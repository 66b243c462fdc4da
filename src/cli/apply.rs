use std::path::Path;

use anyhow::anyhow;
use printable::counted;

use super::changes;
use super::options::Only;
use super::session::{Misuse, Session, absolute, caller};
use super::{Outcome, plan};
use crate::run::{self, Saved};

pub(crate) fn run(
    session: &Session,
    file: Option<&Path>,
    dry_run: bool,
    only: Option<Only>,
) -> anyhow::Result<Outcome> {
    let saved = file.map(read).transpose()?;
    let config = session.config()?;
    let stale = |error| again(error, file);
    if dry_run {
        let run = session.pipeline(&config)?;
        let planned = match only {
            None => run.rehearse(saved.as_ref(), true).map_err(stale)?,
            Some(Only::Exporter) => run.plan_exporter()?,
        };
        session.format.print(&planned, || plan::shown(session, &planned, file, only))?;
        return Ok(if planned.is_undecided { Outcome::Undecided } else { Outcome::Done });
    }
    if saved.as_ref().is_some_and(|saved| saved.rehearsal.is_some()) {
        session.pipeline(&config)?.rehearse(saved.as_ref(), false).map_err(stale)?;
    }
    let applied = session.run(&config, |run, on_progress| match only {
        None => run.apply(saved.as_ref(), on_progress).map_err(stale),
        Some(Only::Exporter) => Ok(run.apply_exporter(on_progress)?),
    })?;
    session.format.print(&applied, || shown(session, &applied, only))?;
    if applied.falls_short() { Ok(Outcome::FellShort) } else { Ok(Outcome::Done) }
}

/// What to do with a saved plan that fits no longer.
fn again(error: run::Error, file: Option<&Path>) -> anyhow::Error {
    match (&error, file) {
        (run::Error::Stale(_), Some(file)) => {
            anyhow!("{error}. Look at a new plan: rocworker plan --save {}", file.display())
        }
        _ => error.into(),
    }
}

fn read(file: &Path) -> anyhow::Result<Saved> {
    let path = absolute(file)?;
    let text =
        caller()?.read_trusted(&path, plan::LIMIT).map_err(|error| Misuse(format!("the plan: {error}")))?;
    Saved::parse(&text).map_err(|problem| anyhow!(Misuse(format!("{} {problem}", path.display()))))
}

fn shown(session: &Session, applied: &run::Outcome, only: Option<Only>) -> String {
    let mut text = changes::outcome(session, applied);
    let is_revert = applied.changes.iter().all(reconcile::Change::is_revert);
    let left_alone = changes::left_alone(session, applied);
    let is_in_sync = left_alone.is_none();
    text.push_str(&match applied.changes.len() {
        0 if applied.falls_short() => "Nothing changed; what is named above remains.\n".to_owned(),
        0 if is_in_sync => "Already in sync; no changes.\n".to_owned(),
        0 => "Nothing changed.\n".to_owned(),
        n if is_revert => format!("{} reverted.\n", counted(n, "change")),
        n => {
            let only = if only == Some(Only::Exporter) { " --only exporter" } else { "" };
            format!("{} made. To revert: rocworker undo{only}\n", counted(n, "change"))
        }
    });
    text.extend(left_alone);
    text
}
