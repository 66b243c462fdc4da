use printable::{counted, printable};

use super::Outcome;
use super::changes;
use super::options::Only;
use super::output::wrapped;
use super::partition::set::say;
use super::plan;
use super::session::Session;
use crate::daemon::features;
use crate::partition::Undoing;
use crate::{exporter_unit, run};

pub(crate) fn run(
    session: &Session,
    force: bool,
    dry_run: bool,
    only: Option<Only>,
) -> anyhow::Result<Outcome> {
    let config = session.config_for_undo()?;
    if dry_run {
        let planned = session.pipeline(&config)?.plan_undo(force)?;
        session.format.print(&planned, || would(session, &planned, force))?;
        return Ok(Outcome::Done);
    }
    let pipeline = session.pipeline(&config)?;
    let undoing = match only {
        None => Some(Undoing::begin(&pipeline, &mut |news| say(&news))?),
        Some(Only::Exporter) => None,
    };
    let undone = session.run(&config, |run, on_progress| match only {
        None => run.undo(None, force, on_progress),
        Some(Only::Exporter) => run.undo_exporter(force, on_progress),
    })?;
    session.format.print(&undone, || shown(session, &undone, only))?;
    if let Some(undoing) = undoing {
        undoing.end(&pipeline, undone.failed.is_empty(), &mut |news| say(&news))?;
        features::remove(&session.root)?;
    }
    Ok(if undone.falls_short() { Outcome::FellShort } else { Outcome::Done })
}

fn would(session: &Session, planned: &run::Planned, force: bool) -> String {
    let command = if force { "rocworker undo --force" } else { "rocworker undo" };
    let end = match planned.plan.changes.len() {
        0 if planned.plan.left.is_empty() => NOTHING.to_owned(),
        0 => "Nothing to revert.\n".to_owned(),
        n => format!("{}: {command} reverts {}\n", counted(n, "change"), if n == 1 { "it" } else { "them" }),
    };
    plan::listed(session, planned) + &end
}

/// Whose exporter stays.
fn no_exporter(session: &Session) -> String {
    let foreign = exporter_unit::foreign(&session.root).map(|foreign| {
        let path = foreign.path.display();
        format!("; {path} is not rocworker's and {}: it stays", foreign.what)
    });
    let foreign = foreign.unwrap_or_default();
    wrapped(&printable(&format!(
        "rocworker manages no {} here: nothing to undo{foreign}",
        exporter_unit::NAME
    )))
}

const NOTHING: &str = "rocworker manages nothing here: nothing to undo\n";

fn shown(session: &Session, undone: &run::Outcome, only: Option<Only>) -> String {
    let mut text = changes::outcome(session, undone);
    text.push_str(&match undone.changes.len() {
        0 if undone.failed.is_empty() && undone.left.is_empty() => match only {
            None => NOTHING.to_owned(),
            Some(Only::Exporter) => no_exporter(session),
        },
        0 => "Nothing was reverted.\n".to_owned(),
        n => format!("{} reverted\n", counted(n, "change")),
    });
    text
}
