use super::Outcome;
use super::changes::{counted, findings, settled};
use super::output::{WARN, styled};
use super::progress::Shown;
use super::session::Session;
use crate::printable::printable;
use crate::setup::{Booted, named};

pub(crate) fn run(session: &Session) -> anyhow::Result<Outcome> {
    let config = match session.config_of_last_apply() {
        Ok(config) => config,
        Err(wrong) => return without_configuration(session, wrong),
    };
    let wait_s = config.boot.wait_s;
    let mut shown_so_far = Shown::new(session);
    let booted =
        session.with_setup(&config, |setup| Ok(setup.boot(&mut |progress| shown_so_far.hear(progress))?))?;
    shown_so_far.end()?;
    session.format.print(&booted, || shown(session, &booted))?;
    if !booted.missing.is_empty() {
        tracing::error!(
            "not there after {wait_s} s, and engines start without: {}; rocworker doctor says more, and rocworker apply \
             takes in what comes later",
            named(&booted.missing)
        );
    }
    if booted.falls_short() { Ok(Outcome::FellShort) } else { Ok(Outcome::Done) }
}

/// The end of the program is that of a wrong configuration, as with every command.
fn without_configuration(session: &Session, wrong: anyhow::Error) -> anyhow::Result<Outcome> {
    // Of the machine's own, where that can be read, it is asked how long to wait.
    let config = session.config().or_else(|_| session.config_without_restarts())?;
    let mut shown_so_far = Shown::new(session);
    session.with_setup(&config, |setup| {
        Ok(setup.boot_without_configuration(&mut |progress| shown_so_far.hear(progress))?)
    })?;
    shown_so_far.end()?;
    Err(wrong)
}

fn shown(session: &Session, booted: &Booted) -> String {
    let mut text = settled(&booted.effects);
    text.push_str(&findings(&session.root, "failed", &booted.failed));
    for path in &booted.differs {
        let path = printable(&path.shown(&session.root));
        let mark = styled(WARN, "…");
        text.push_str(&format!("{mark} {path} differs from what should be: rocworker apply\n"));
    }
    text.push_str(&match booted.changes.len() {
        0 if !booted.set_up => {
            "nothing is set up here, and nothing was changed: rocworker apply sets it up\n".to_owned()
        }
        0 => "engines are told of this machine's GPUs as they are: nothing was changed\n".to_owned(),
        n => format!("{} made before engines start\n", counted(n, "change")),
    });
    text
}
