//! The tags that a worker has after an apply: the ones that apply writes, else the ones that the worker has already.

use std::path::Path;

use config::selection::Selection;
use config::{Config, Managed};
use reconcile::{Content, Desired, Kind};

use super::super::tags::{self, VARIABLE};
use super::super::{Concourse, DROP_IN, ENV_FILE, NAME};
use super::managed;
use host::env_file::EnvFile;

/// Tags, and why apply does not write them, or why there are none: a sentence.
#[derive(Debug, PartialEq, Eq)]
pub struct Tagged {
    pub tags: Vec<String>,
    pub unwritten: Option<String>,
}

/// The worker's tags once all of `desired` is applied. A worker that a person sets up gets the tags of the
/// configuration and of the GPUs.
///
/// # Errors
/// Why apply leaves the tags as they are.
pub fn tagged(
    config: &Config,
    selection: &Selection<'_>,
    concourse: &Concourse,
    desired: &Desired,
) -> Result<Tagged, String> {
    let unwritten = |tags, why: String| Ok(Tagged { tags, unwritten: Some(why) });
    if let Managed::Off(why) = config.concourse.managed {
        return unwritten(tags::tags(config, selection), format!("{why}: rocworker apply writes no tags"));
    }
    if concourse.worker.is_none() && concourse.unknown.is_none() {
        let why = "no Concourse worker is here: rocworker apply writes no tags";
        return unwritten(tags::tags(config, selection), why.to_owned());
    }
    if desired.is_undecided || desired.undecided.iter().any(|component| component == NAME) {
        return Err(format!(
            "rocworker apply leaves the worker's tags as they are: {}",
            why_undecided(desired)
        ));
    }
    let Some(worker) = &concourse.worker else { return Err(why_undecided(desired).to_owned()) };
    let without = tags::known(worker);
    if managed(config, concourse).is_none() {
        let why = "the Concourse charm has set this worker up, and concourse.existing is leave: rocworker apply writes no tags";
        return unwritten(listed(without), why.to_owned());
    }
    if worker.options.has("tag") {
        let given = worker.options.values(&["tag"]);
        let tags = given.into_iter().filter_map(|(_, tags)| tags).flat_map(listed).collect();
        let why = format!("{} sets the worker's tags by --tag, which wins", worker.unit.display());
        return unwritten(tags, why);
    }
    let written = written(desired)
        // The drop-in takes away what it does not replace.
        .or_else(|| text(desired, DROP_IN).filter(|text| text.contains(VARIABLE)).map(|_| Vec::new()));
    let tags = written.unwrap_or_else(|| listed(without));
    let unwritten = tags.is_empty().then(|| why_none(config, selection, desired).to_owned());
    Ok(Tagged { tags, unwritten })
}

/// Whether the worker has tags of rocworker's once `desired` is applied, or had some and may have them again.
#[must_use]
pub fn has_tagged(config: &Config, concourse: &Concourse, desired: &Desired) -> bool {
    let was_tagged = concourse.worker.as_ref().is_some_and(|worker| worker.was_tagged);
    config.concourse.tags != Some(false) && (was_tagged || written(desired).is_some())
}

fn written(desired: &Desired) -> Option<Vec<String>> {
    text(desired, ENV_FILE).and_then(|text| EnvFile::parse(text).get(VARIABLE).map(listed))
}

/// Why a worker without tags of its own gets none.
fn why_none<'a>(config: &Config, selection: &Selection<'_>, desired: &'a Desired) -> &'a str {
    if selection.gpus.is_empty() {
        return "no GPU is set up here, and the worker has no tags of its own: rocworker detect says why";
    }
    if config.concourse.tags == Some(false) {
        return "concourse.tags is false, and the worker has no tags of its own";
    }
    let problem = desired.notes.iter().find(|note| note.problem && note.about == NAME);
    problem.map_or("rocworker apply writes no tags: rocworker plan says why", |note| &note.text)
}

fn listed(tags: &str) -> Vec<String> {
    tags.split(',').filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

fn text<'a>(desired: &'a Desired, path: &str) -> Option<&'a str> {
    let action = desired.actions.iter().find(|action| action.path.path() == Some(Path::new(path)))?;
    match &action.kind {
        Kind::Owned(Content::File { bytes, .. }) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

fn why_undecided(desired: &Desired) -> &str {
    let mut about = desired.notes.iter().filter(|note| [NAME, "wrapper", "gpu"].contains(&&*note.about));
    let problem = about.clone().find(|note| note.problem);
    problem.or_else(|| about.next()).map_or("rocworker plan says why", |note| &note.text)
}
