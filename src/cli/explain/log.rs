use crate::cli::Outcome;
use crate::cli::session::Session;

pub(super) fn text(_session: &Session, _text: &str) -> anyhow::Result<Outcome> {
    anyhow::bail!("not yet")
}

pub(super) fn stdin(_session: &Session) -> anyhow::Result<Outcome> {
    anyhow::bail!("not yet")
}

pub(super) fn journal(_session: &Session, _since: Option<&str>) -> anyhow::Result<Outcome> {
    anyhow::bail!("not yet")
}
