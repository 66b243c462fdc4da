//! `boot-partitions`: sets the profile of this machine before engines start.

use std::io::Write as _;
use std::time::{Duration, Instant};

use config::{Config, Reload};
use host::facts::Facts;
use printable::printable;

use super::Outcome;
use super::partition::{profile, set};
use super::session::Session;
use crate::partition::{Goal, Options, rivals};
use crate::pending_gpus::pending_gpus;
use crate::run::named;

/// Between two looks at a machine whose driver is coming up.
const PAUSE: Duration = Duration::from_millis(100);

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
    let (name, entries) = profile(partitions, None)?;
    wait(session, &config);
    let options = Options { reload: partitions.reload == Reload::Boot, wait: WAIT, kill: false };
    set::switch(session, &config, &Goal::Profile(name.to_owned()), entries, options)
}

/// Waits for cards whose driver is coming up, as long as the configuration says.
fn wait(session: &Session, config: &Config) {
    let wait_s = config.boot.wait_s;
    let until = Instant::now() + Duration::from_secs(wait_s.into());
    let mut said = Vec::new();
    while Instant::now() < until {
        let facts = Facts::read(&session.root);
        let coming = pending_gpus(&session.root, config, &facts);
        if coming.is_empty() && !facts.inventory.may_lack_gpus() {
            return;
        }
        if coming != said {
            let named = printable(&named(&coming));
            writeln!(anstream::stderr(), "waiting up to {wait_s} s for {named}").ok();
            said = coming;
        }
        std::thread::sleep(PAUSE);
    }
}
