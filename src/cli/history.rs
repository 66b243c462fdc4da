use std::time::{Duration, UNIX_EPOCH};

use host::timestamp::Timestamp;
use reconcile::history::{self, Event};
use serde::Serialize;

use super::Outcome;
use super::options::Format;
use super::session::Session;
use super::table::Columns;

#[derive(Serialize)]
struct Answer {
    schema_version: u32,
    events: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    /// RFC 3339, UTC.
    when: String,
    #[serde(flatten)]
    event: Event,
}

pub(crate) fn run(session: &Session) -> anyhow::Result<Outcome> {
    let entry = |event: Event| Entry {
        when: Timestamp::of(UNIX_EPOCH + Duration::from_secs(event.at)).to_string(),
        event,
    };
    let events = history::read(&session.root)?.into_iter().map(entry).collect();
    let answer = Answer { schema_version: 1, events };
    session.format.print(&answer, || {
        if answer.events.is_empty() {
            return "rocworker has changed nothing here\n".to_owned();
        }
        let mut columns = Columns::new(&["WHEN", "COMMAND", "CALLER", "VERSION", "CONFIG", "CHANGED"]);
        columns = columns.only_wide(&[3, 4]).shortened(&[5, 2]);
        for Entry { when, event } in &answer.events {
            let config: String = event.config_sha256.chars().take(8).collect();
            let changed: Vec<_> = event.changed.iter().map(|it| it.path.display().to_string()).collect();
            let changed = match changed.as_slice() {
                [first, _, ..] if session.format != Format::Wide => {
                    format!("{first} and {} more", changed.len() - 1)
                }
                all => all.join(" "),
            };
            let command =
                if event.killed { format!("{} (killed)", event.command) } else { event.command.clone() };
            columns.row([
                when.clone().into(),
                command.into(),
                event.caller.clone().into(),
                event.version.clone().into(),
                config.into(),
                changed.into(),
            ]);
        }
        columns.shown(session.format)
    })?;
    Ok(Outcome::Done)
}
