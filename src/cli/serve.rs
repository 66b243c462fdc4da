use anyhow::Context as _;

use super::Outcome;
use super::session::{self, Session};
use crate::daemon::notify::Notifier;
use crate::daemon::serve::serve;

pub(crate) fn run(session: Session) -> anyhow::Result<Outcome> {
    let caller = crate::run::caller(&session::caller()?);
    let config = session.config_file()?;
    let notifier = notifier().context("cannot reach systemd").context("serve")?;
    serve(session.root, config, notifier, caller).context("serve")?;
    Ok(Outcome::Done)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment of a service is read here, once, and handed in as data"
)]
fn notifier() -> std::io::Result<Notifier> {
    Notifier::of(|name| std::env::var(name).ok(), std::process::id())
}
