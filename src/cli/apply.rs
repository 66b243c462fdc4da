use std::path::Path;

use anyhow::anyhow;
use reconcile::Progress;

use super::args::Format;
use super::changes::{change, counted, findings, notes, settled};
use super::output::print_text;
use super::session::{Misuse, Session, absolute, caller};
use super::{Outcome, plan};
use crate::setup::{Applied, Saved};

/// More than a plan with the diffs of a megabyte of configuration has.
const LIMIT: usize = 64 << 20;

pub(crate) fn run(session: &Session, file: Option<&Path>, dry_run: bool) -> anyhow::Result<Outcome> {
    let saved = file.map(read).transpose()?;
    let config = session.config()?;
    if dry_run {
        let planned = session.with_setup(&config, |setup| Ok(setup.plan(saved.as_ref())?))?;
        session.format.print(&planned, || plan::shown(session, &planned, file))?;
        return Ok(Outcome::Done);
    }
    let applied =
        saying(session, |told| session.with_setup(&config, |setup| Ok(setup.apply(saved.as_ref(), told)?)))?;
    session.format.print(&applied, || shown(session, &applied))?;
    if applied.falls_short() { Ok(Outcome::FellShort) } else { Ok(Outcome::Done) }
}

/// Does something, and shows each change as it is made. What cannot be printed keeps nothing from being made, and is
/// told at the end.
pub(crate) fn saying<T>(
    session: &Session,
    act: impl FnOnce(&mut dyn FnMut(Progress<'_>)) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut printed = Ok(());
    let done = act(&mut |progress| {
        if printed.is_ok() {
            printed = say(session, &progress);
        }
    })?;
    printed.map(|()| done)
}

/// For people: a run that hangs shows where.
fn say(session: &Session, progress: &Progress<'_>) -> anyhow::Result<()> {
    let Progress::Begins(made) = progress else { return Ok(()) };
    match session.format {
        Format::Table => print_text(&change(&session.root, made, session.verbose, session.verbose)),
        Format::Json => Ok(()),
    }
}

fn read(file: &Path) -> anyhow::Result<Saved> {
    let path = absolute(file)?;
    let text = caller()?.read_trusted(&path, LIMIT).map_err(|error| Misuse(format!("the plan: {error}")))?;
    Saved::parse(&text).map_err(|problem| anyhow!(Misuse(format!("{} {problem}", path.display()))))
}

fn shown(session: &Session, applied: &Applied) -> String {
    let root = &session.root;
    let mut text = settled(&applied.effects);
    text.push_str(&findings(root, "failed", &applied.failed));
    text.push_str(&findings(root, "blocked", &applied.blocked));
    text.push_str(&findings(root, "contested", &applied.contested));
    text.push_str(&findings(root, "left", &applied.left));
    text.push_str(&notes(&applied.notes));
    text.push_str(&match applied.changes.len() {
        0 if applied.falls_short() => "nothing was changed\n".to_owned(),
        0 => "everything is as it should be: nothing was changed\n".to_owned(),
        n => format!("{} made; rocworker undo takes back what is ours\n", counted(n, "change")),
    });
    text
}
