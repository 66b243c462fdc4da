use config::selection;
use engines::concourse::desired::Tagged;
use serde::Serialize;

use super::Outcome;
use super::session::Session;

#[derive(Serialize)]
struct Answer<'a> {
    schema_version: u32,
    tags: &'a [String],
}

pub(crate) fn run(session: &Session, environment: bool) -> anyhow::Result<Outcome> {
    if let Some(why) = print(session, environment)? {
        tracing::warn!("{why}");
    }
    Ok(Outcome::Done)
}

/// Returns why apply writes no tags, if it does not. `environment`: as a line for an environment file.
pub(crate) fn print(session: &Session, environment: bool) -> anyhow::Result<Option<String>> {
    let config = session.config()?;
    let facts = session.facts()?;
    let selection = selection::select(&config, &facts)?;
    session.warn_of_left_out(&selection);
    let Tagged { tags, unwritten } = session.pipeline(&config)?.tags(&selection)?;
    session.format.print(&Answer { schema_version: 1, tags: &tags }, || {
        let joined = tags.join(",");
        match (environment, joined.as_str()) {
            // An empty value would be the empty tag, and a blank line says nothing.
            (_, "") => String::new(),
            (true, _) => format!("CONCOURSE_TAG={joined}\n"),
            (false, _) => format!("{joined}\n"),
        }
    })?;
    Ok(unwritten)
}
