use printable::{counted, printable};

use super::Outcome;
use super::changes::{findings, settled};
use super::output::{WARN, styled};
use super::session::Session;
use crate::run::{self, named, without_restarts};

pub(crate) fn run(session: &Session) -> anyhow::Result<Outcome> {
    let active = session.config_in_force();
    let config = match &active {
        Ok(config) => config.clone(),
        // The file that can be read says how long to wait.
        Err(_) => session.config().or_else(|_| anyhow::Ok(without_restarts(&session.root)?))?,
    };
    let wait_s = config.boot.wait_s;
    let booted = session.run(&config, |run, on_progress| run.boot(active.is_ok(), on_progress))?;
    // The program ends as with every wrong configuration.
    active?;
    session.format.print(&booted, || shown(session, &booted))?;
    if !booted.missing.is_empty() {
        tracing::error!(
            "not there after {wait_s} s, and engines start without: {}; rocworker doctor says more, and rocworker apply \
             adds what comes later",
            named(&booted.missing)
        );
    }
    if booted.falls_short() { Ok(Outcome::FellShort) } else { Ok(Outcome::Done) }
}

fn shown(session: &Session, booted: &run::Outcome) -> String {
    let mut text = settled(&booted.effects);
    text.push_str(&findings(session, "failed", &booted.failed));
    for differs in &booted.differs {
        let path = printable(&differs.path.shown(&session.root));
        let next = "differs from what should be: rocworker apply";
        text.push_str(&format!("{} {path} {next}\n", styled(WARN, "pending:")));
    }
    text.push_str(&match booted.changes.len() {
        0 if !booted.state.is_applied() => {
            "nothing is set up here, and nothing was changed: rocworker apply sets it up\n".to_owned()
        }
        0 => "The published GPUs are those of this machine; no changes.\n".to_owned(),
        n => format!("{} made before engines start\n", counted(n, "change")),
    });
    text
}
