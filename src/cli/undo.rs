use super::Outcome;
use super::changes;
use super::session::Session;
use crate::printable::counted;
use crate::run;

pub(crate) fn run(session: &Session, force: bool) -> anyhow::Result<Outcome> {
    let config = session.config_for_undo()?;
    let undone = session.run(&config, |run, on_progress| run.undo(None, force, on_progress))?;
    session.format.print(&undone, || shown(session, &undone))?;
    Ok(if undone.falls_short() { Outcome::FellShort } else { Outcome::Done })
}

fn shown(session: &Session, undone: &run::Outcome) -> String {
    let mut text = changes::outcome(&session.root, undone);
    text.push_str(&match undone.changes.len() {
        0 if undone.failed.is_empty() && undone.left.is_empty() => {
            "rocworker manages nothing here: nothing to undo\n".to_owned()
        }
        0 => "Nothing was reverted.\n".to_owned(),
        n => format!("{} reverted\n", counted(n, "change")),
    });
    text
}
