//! `boot-partitions`: sets the profile of this machine before engines start.

use std::io::Write as _;
use std::time::Duration;

use config::Reload;
use printable::printable;
use reconcile::Progress;

use super::Outcome;
use super::partition::{profile, set};
use super::session::Session;
use crate::partition::{Goal, Options, rivals};

/// How long processes may take to leave the cards: at a start of the machine only a look of another tool is on one.
const WAIT: Duration = Duration::from_secs(10);

pub(crate) fn run(session: &Session) -> anyhow::Result<Outcome> {
    let config = session.config_in_force()?;
    let partitions = &config.partitions;
    let why_not = match &partitions.profile {
        None => vec!["config.yaml has no partitions.profile: cards keep their modes".to_owned()],
        Some(_) => rivals(&session.root),
    };
    if !why_not.is_empty() {
        set::nothing(session, &why_not.join("; "))?;
        return Ok(Outcome::Done);
    }
    let (name, _) = profile(partitions, None)?;
    let mut say = |progress: Progress<'_>| {
        if let Progress::Waits(text) = progress {
            writeln!(anstream::stderr(), "{}", printable(&text)).ok();
        }
    };
    session.pipeline(&config)?.wait_for_gpus(&mut say)?;
    let reload = partitions.reload == Reload::Boot;
    let options = Options { reload, wait: WAIT, kill: false, stops_units: false };
    // rocworker-boot.service publishes the devices.
    set::switch(session, &config, &Goal::Profile(name.to_owned()), options, &|| Ok(()))
}
