//! What stays names what goes: then that stays too. Entries are taken back in reverse, so that what names another comes
//! before it.

use std::path::{Path, PathBuf};

use root::Root;
use serde_json::Value;

use super::{Target, Verdict};
use crate::State;
use crate::edit::Format;
use crate::state::{Found, LIMIT};

/// Files that stay and in which something of ours may stand.
#[derive(Debug, Default)]
pub(crate) struct Standing(Vec<(PathBuf, Vec<u8>)>);

impl Standing {
    pub(crate) fn add(&mut self, path: &Path, bytes: Vec<u8>) {
        self.0.push((path.to_owned(), bytes));
    }

    /// Why a path may not be taken away, if it may not.
    pub(crate) fn hold(&self, path: &Path) -> Option<String> {
        let (file, _) = self.0.iter().find(|(_, bytes)| names(bytes, path))?;
        Some(format!("{} names it and stays: take it out there, then undo again", file.display()))
    }

    /// The verdict on an entry, in the light of those before it.
    pub(super) fn unless_named(
        &mut self,
        root: &Root,
        path: &Path,
        found: &Found,
        verdict: Verdict,
        force: bool,
    ) -> Verdict {
        match &verdict {
            Verdict::Left(_) | Verdict::GoneBut(_) => {
                // What a link leads to, too: somebody may have moved the file there.
                let behind = || root.read(path, LIMIT).unwrap_or_default();
                let is_link = matches!(found, Found::Else(State::Link { .. }));
                self.add(path, if is_link { behind() } else { found.bytes().to_vec() });
            }
            Verdict::Change(change) => match &change.target {
                // What stands there from then on: keys of ours that somebody has changed, or what was there before.
                Target::File { bytes, .. } => self.add(path, bytes.clone()),
                Target::Absent | Target::UnpackedGone if !force => {
                    if let Some(text) = self.hold(path) {
                        return Verdict::Left(text);
                    }
                }
                _ => {}
            },
            _ => {}
        }
        verdict
    }
}

/// Whether a file names a path, otherwise than in a comment, which keeps nothing from working.
fn names(bytes: &[u8], path: &Path) -> bool {
    let (Ok(text), Some(path)) = (std::str::from_utf8(bytes), path.to_str()) else {
        let path = path.as_os_str().as_encoded_bytes();
        return !path.is_empty() && bytes.windows(path.len()).any(|it| it == path);
    };
    match Format::Json.read(text).or_else(|_| Format::Toml.read(text)) {
        Ok(document) if !text.starts_with("#!") => says(&document, path),
        // Units, environment files and scripts; and what should be JSON or TOML and is broken.
        _ => text.lines().any(|line| !is_comment(line) && line.contains(path)),
    }
}

fn says(value: &Value, path: &str) -> bool {
    match value {
        Value::String(text) => text.contains(path),
        Value::Array(items) => items.iter().any(|item| says(item, path)),
        Value::Object(entries) => entries.iter().any(|(key, value)| key.contains(path) || says(value, path)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A whole line, as systemd has them (systemd.syntax(7)); a script's first line tells what runs it.
fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with([';', '#']) && !line.starts_with("#!")
}
