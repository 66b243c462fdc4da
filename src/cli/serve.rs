use anyhow::Context as _;

use super::Outcome;
use super::session::{Session, caller, variable};
use crate::daemon::notify::Manager;
use crate::daemon::serve::{Given, serve};

pub(crate) fn run(session: Session) -> anyhow::Result<Outcome> {
    let caller = crate::run::caller(&caller()?);
    let config = session.config_file()?;
    let manager = Manager::of(variable, std::process::id());
    serve(Given { root: session.root, config, manager, caller }).context("serve")?;
    Ok(Outcome::Done)
}
