use printable::printable;

use super::Outcome;
use super::session::{Misuse, Session};
use crate::task_check::{self, Verdict};

pub(crate) fn run(session: &Session) -> anyhow::Result<Outcome> {
    if !session.root.is_host() {
        let why = "task-check opens the devices of the container that it runs in: with --root there are none";
        return Err(Misuse(why.to_owned()).into());
    }
    let verdict = task_check::check(&session.root);
    session.format.print(&verdict, || text(&verdict))?;
    Ok(if verdict.ok { Outcome::Done } else { Outcome::Findings })
}

/// The lines have no colours, also on a terminal: a task has a terminal, but people search its log.
fn text(verdict: &Verdict) -> String {
    let line = |line: &task_check::Line| {
        let sign = if line.ok { "✓" } else { "✗" };
        format!("{sign} {}\n", printable(&line.text))
    };
    verdict.lines.iter().map(line).collect()
}
