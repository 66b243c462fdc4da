//! A setting of somebody's that names what is ours: an engine whose default runtime is the one that goes would not
//! start again.

use std::path::PathBuf;

use root::Root;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::change::{After, Change};
use crate::WayBack;
use crate::edit::Format;
use crate::receipt::Entry;
use crate::state::LIMIT;

/// A key of a file that would name nothing if it held this value and ours were gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    pub file: PathBuf,
    pub format: Format,
    pub key: Vec<String>,
    pub value: String,
}

/// Why a change may not be made that gives ours another name: a setting names it by the old one.
pub(super) fn given_up(root: &Root, held: &Entry, change: &Change, now: &WayBack) -> Option<String> {
    let After::Held(entry) = &change.after else { return None };
    let is_kept = |it: &Use| entry.uses.iter().any(|kept| kept.value == it.value);
    let uses: Vec<Use> = held.uses.iter().filter(|it| !is_kept(it)).cloned().collect();
    if uses.is_empty() {
        return None;
    }
    standing(root, &Entry { uses, ..held.clone() }, now)
}

/// Why an entry may not be taken away: something runs by it, or a setting names it, where one was looked for when it
/// came or can stand by now.
pub(super) fn standing(root: &Root, entry: &Entry, now: &WayBack) -> Option<String> {
    let mut running = now.running.get(&entry.concern).into_iter().flatten();
    if let Some(what) = running.find_map(|it| it.by(root, &entry.path)) {
        return Some(format!(
            "{what} runs by it, and nobody could stop that without it: stop it, then run this again"
        ));
    }
    let named = now
        .named
        .iter()
        .find(|named| named.concern == entry.concern && entry.uses.iter().any(|it| it.value == named.value));
    if let Some(named) = named {
        return Some(format!(
            "{}, which would name nothing: change that first, then run this again",
            named.by
        ));
    }
    let files = now.files.get(&entry.concern).map_or(&[][..], Vec::as_slice);
    let in_files =
        entry.uses.iter().flat_map(|it| files.iter().map(|file| Use { file: file.clone(), ..it.clone() }));
    let mut uses: Vec<Use> = Vec::new();
    for it in entry.uses.iter().cloned().chain(in_files) {
        if !uses.contains(&it) {
            uses.push(it);
        }
    }
    let is_there = |it: &&Use| {
        let text = root.read_text(&it.file, LIMIT).ok();
        let document = text.and_then(|text| it.format.read(&text).ok());
        let value = document
            .as_ref()
            .and_then(|document| it.key.iter().try_fold(document, |value, key| value.get(key)));
        value.and_then(Value::as_str) == Some(&it.value)
    };
    let it = uses.iter().find(is_there)?;
    Some(format!(
        "{} says {} = {:?}, which would name nothing: change that first, then run this again",
        root.shown(&it.file).display(),
        it.key.last().map_or("", String::as_str),
        it.value
    ))
}
