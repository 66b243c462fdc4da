use reconcile::Outcome as EffectOutcome;

use super::Outcome;
use super::changes;
use super::output::print_text;
use super::session::{Misuse, Session};
use crate::run::wait_and_start;

/// Prints for systemd's journal what it waited for.
pub(crate) fn run(session: &Session, unit: &str) -> anyhow::Result<Outcome> {
    let programs = session
        .programs
        .as_ref()
        .ok_or_else(|| Misuse("settle: nothing is started beneath another root than /".to_owned()))?;
    let settled = wait_and_start(&session.root, programs, unit)?;
    print_text(&changes::settled(&settled))?;
    let has_failed = settled.iter().any(|it| it.outcome == EffectOutcome::Failed);
    Ok(if has_failed { Outcome::FellShort } else { Outcome::Done })
}
