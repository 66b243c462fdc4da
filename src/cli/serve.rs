use anyhow::Context as _;

use super::Outcome;
use super::session::{self, Session};
use crate::daemon::notify::Manager;
use crate::daemon::serve::{Given, serve};

pub(crate) fn run(session: Session) -> anyhow::Result<Outcome> {
    let caller = session::caller()?;
    let told_by = crate::run::caller(&caller);
    let config = session.config_file()?;
    let manager = manager();
    serve(Given { root: session.root, config, manager, caller: told_by }).context("serve")?;
    Ok(Outcome::Done)
}

#[expect(
    clippy::disallowed_methods,
    reason = "what systemd tells a service is read here, once, and handed in as data"
)]
fn manager() -> Manager {
    Manager::of(|name| std::env::var(name).ok(), std::process::id())
}
