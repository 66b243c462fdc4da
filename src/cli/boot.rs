use super::Outcome;
use super::apply::say;
use super::changes::{counted, findings, settled};
use super::output::{WARN, styled};
use super::session::Session;
use crate::awaited::Awaited;
use crate::printable::printable;
use crate::setup::Booted;

pub(crate) fn run(session: &Session) -> anyhow::Result<Outcome> {
    let config = session.config()?;
    let wait_s = config.boot.wait_s;
    let mut unprinted = Ok(());
    let booted = session.with_setup(&config, |setup| {
        let waits = &mut |missing: &[Awaited]| {
            tracing::warn!("waiting up to {wait_s} s for {}", named(missing));
        };
        let told = &mut |change: &reconcile::Change| {
            let printed = say(session, change);
            unprinted = std::mem::replace(&mut unprinted, Ok(())).and(printed);
        };
        Ok(setup.boot(waits, told)?)
    })?;
    unprinted?;
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

/// Of partitions there may be many: why the first is not there is mostly why none is.
fn named(missing: &[Awaited]) -> String {
    let Some(first) = missing.first() else { return String::new() };
    let why = format!("{}: {}", first.gpu, first.problems.join("; "));
    match missing.len() {
        1 => why,
        count => format!("{count} GPUs, of which {why}"),
    }
}

fn shown(session: &Session, booted: &Booted) -> String {
    let mut text = settled(&booted.effects);
    text.push_str(&findings(&session.root, "failed", &booted.failed));
    for path in &booted.differs {
        let path = printable(&session.root.shown(path).display().to_string());
        let mark = styled(WARN, "…");
        text.push_str(&format!("{mark} {path} differs from what should be: rocworker apply\n"));
    }
    text.push_str(&match booted.changes.len() {
        0 => "engines are told of this machine's GPUs as they are: nothing was changed\n".to_owned(),
        n => format!("{} made before engines start\n", counted(n, "change")),
    });
    text
}
