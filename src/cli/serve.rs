use anyhow::Context as _;

use super::Outcome;
use super::session::{self, Session};
use crate::daemon::serve::serve;

pub(crate) fn run(session: Session) -> anyhow::Result<Outcome> {
    let caller = crate::run::caller(&session::caller()?);
    let config = session.config_file()?;
    serve(session.root, config, caller).context("serve")?;
    Ok(Outcome::Done)
}
