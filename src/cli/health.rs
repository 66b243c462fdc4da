use std::path::Path;

use super::Outcome;
use super::session::Session;

pub(crate) fn run(_session: &Session, _rules: Option<&Path>) -> anyhow::Result<Outcome> {
    anyhow::bail!("not yet")
}
