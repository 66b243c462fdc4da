//! A setting of another program that names what is managed: an engine whose default runtime is the one that goes would
//! not start again.

use std::path::{Path, PathBuf};

use root::{Kind, Root};
use serde_json::Value;

use super::stays::read;
use crate::error::if_there;
use crate::model::{Change, Entry, Managed, Running, UndoConstraints, Use};

/// Why a change may not be made that gives a managed part another name: a setting names it by the old one.
pub(super) fn given_up(root: &Root, held: &Entry, change: &Change, now: &UndoConstraints) -> Option<String> {
    let entry = change.entry.as_ref()?;
    let is_kept = |it: &Use| entry.uses.iter().any(|kept| kept.value == it.value);
    let uses: Vec<Use> = held.uses.iter().filter(|it| !is_kept(it)).cloned().collect();
    if uses.is_empty() {
        return None;
    }
    in_use(root, &Entry { uses, ..held.clone() }, now)
}

/// Why an entry may not be reverted: something runs by it, or a setting names it, where an earlier run looked for
/// one or one can be set by now.
pub(super) fn in_use(root: &Root, entry: &Entry, now: &UndoConstraints) -> Option<String> {
    let mut running = now.running.get(&entry.component).into_iter().flatten();
    match entry.path.path().and_then(|path| running.find_map(|it| it.by(root, path).transpose())) {
        Some(Ok(what)) => {
            return Some(format!(
                "{what} runs by it and could not be stopped without it: stop it, then run this again"
            ));
        }
        Some(Err(unknown)) => {
            return Some(format!("{unknown}; see that it can be read, then run this again"));
        }
        None => {}
    }
    let is_its =
        |value: &str| entry.uses.iter().any(|it| it.value == value) || entry.path == *Path::new(value);
    let named = now.named.iter().find(|named| named.component == entry.component && is_its(&named.value));
    if let Some(named) = named {
        return Some(format!("{}, then run this again", named.why));
    }
    uses(entry, now).iter().find_map(|it| it.hindrance(root, entry, now))
}

/// Why an entry whose keys are gone from its file stays in the receipt: another key of that file still names
/// it.
pub(super) fn dangling(root: &Root, entry: &Entry, now: &UndoConstraints) -> Option<String> {
    let own = uses(entry, now).into_iter().filter(|it| entry.path == it.file);
    own.filter(|_| matches!(entry.managed, Managed::Edited { .. }))
        .find_map(|it| it.hindrance(root, entry, now))
}

fn uses(entry: &Entry, now: &UndoConstraints) -> Vec<Use> {
    let files = now.files.get(&entry.component).map_or(&[][..], Vec::as_slice);
    let in_files =
        entry.uses.iter().flat_map(|it| files.iter().map(|file| Use { file: file.clone(), ..it.clone() }));
    let mut uses: Vec<Use> = Vec::new();
    for it in entry.uses.iter().cloned().chain(in_files) {
        if !uses.contains(&it) {
            uses.push(it);
        }
    }
    uses
}

impl Running {
    /// A sentence on what runs with this path, if anything does.
    ///
    /// # Errors
    /// A sentence on what cannot be read, and may run with the path.
    pub fn by(&self, root: &Root, path: &Path) -> Result<Option<String>, String> {
        let path = path.as_os_str().as_encoded_bytes();
        let unsure = |error: &str| format!("whether a {} runs by it is not known: {error}", self.what);
        let unknown = |error: root::Error| unsure(&error.to_string());
        let inner = |folder: &Path| -> Result<Vec<PathBuf>, String> {
            let kind = if_there(root.stat(folder)).map_err(unknown)?.map(|meta| meta.kind);
            if kind != Some(Kind::Directory) {
                return Ok(Vec::new());
            }
            let names = if_there(root.list(folder)).map_err(unknown)?.unwrap_or_default();
            Ok(names.into_iter().map(|name| folder.join(name)).collect())
        };
        for group in inner(&self.folder)? {
            for folder in inner(&group)? {
                for file in self.files.iter().map(|file| folder.join(file)) {
                    let bytes = read(root, &file).map_err(|error| unsure(&error))?;
                    if bytes.windows(path.len().max(1)).any(|part| part == path) {
                        let name = folder.file_name().unwrap_or_default().to_string_lossy();
                        return Ok(Some(format!("{} {name}", self.what)));
                    }
                }
            }
        }
        Ok(None)
    }
}

impl Use {
    /// What to do about it first, where the file holds it or cannot be read.
    fn hindrance(&self, root: &Root, entry: &Entry, now: &UndoConstraints) -> Option<String> {
        let bytes = match read(root, &self.file) {
            Ok(bytes) => bytes,
            Err(error) => {
                return Some(format!(
                    "whether {} names runtime {} is not known: {error}; see that it can be read, then run this again",
                    root.shown(&self.file).display(),
                    self.value
                ));
            }
        };
        let document = std::str::from_utf8(&bytes).ok().and_then(|text| self.format.read(text).ok());
        let value = document
            .as_ref()
            .and_then(|document| self.key.iter().try_fold(document, |value, key| value.get(key)));
        value.and_then(Value::as_str).filter(|value| *value == self.value)?;
        let remedy = now.remedies.get(&entry.component).map_or("change that first", String::as_str);
        Some(format!(
            "{} says {} = {:?}, which would name nothing: {remedy}, then run this again",
            root.shown(&self.file).display(),
            self.key.last().map_or("", String::as_str),
            self.value
        ))
    }
}
