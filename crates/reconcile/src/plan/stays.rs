//! Keeps what a staying file names. Entries are reverted in reverse, so that a file that names another comes
//! before it.

use std::path::{Path, PathBuf};

use edit::Format;
use nix::errno::Errno;
use root::Root;
use serde_json::Value;

use crate::kinds::{Planned, Unchanged};
use crate::model::{Change, Entry, Finding, Found, LIMIT, Managed, Resource, State};

/// Files that stay and may name something managed.
#[derive(Debug, Default)]
pub(crate) struct Stays(Vec<Staying>);

#[derive(Debug)]
struct Staying {
    path: Resource,
    /// The file's content, or why it cannot be read.
    bytes: Result<Vec<u8>, String>,
    /// Whether the plan has a line for the file itself, which says what to do.
    is_listed: bool,
}

impl Stays {
    /// Adds an unmanaged file.
    pub(crate) fn add(&mut self, path: impl Into<Resource>, bytes: Result<Vec<u8>, String>) {
        self.0.push(Staying { path: path.into(), bytes, is_listed: false });
    }

    /// Adds a file that this plan or run leaves, and for which it gives the reason. Packages and modules name
    /// nothing.
    pub(crate) fn add_listed(
        &mut self,
        resource: &Resource,
        bytes: impl FnOnce(&Path) -> Result<Vec<u8>, String>,
    ) {
        if let Some(path) = resource.path() {
            self.0.push(Staying { path: resource.clone(), bytes: bytes(path), is_listed: true });
        }
    }

    /// Why a path may not be removed, if it may not.
    pub(crate) fn hold(&self, path: &Path) -> Option<String> {
        self.0.iter().find_map(|file| {
            let shown = &file.path;
            match &file.bytes {
                Ok(bytes) if !named_in(bytes, path) => None,
                Ok(_) if file.is_listed => {
                    Some(format!("{shown} still needs it: do first what is listed for it, then undo again"))
                }
                Err(_) if file.is_listed => {
                    Some(format!("{shown} may name it: do first what is listed for it, then undo again"))
                }
                Ok(_) => Some(format!("{shown} names it and stays: take it out there, then undo again")),
                Err(error) => Some(format!("{shown} may name it: {error}; correct that, then undo again")),
            }
        })
    }

    /// Decides about an entry after those before it: it stays where one of them names it.
    pub(super) fn unless_named(
        &mut self,
        root: &Root,
        entry: &Entry,
        found: &Found,
        planned: Planned,
    ) -> Planned {
        let resource = &entry.path;
        // Packages and modules name nothing.
        let Some(path) = resource.path() else { return planned };
        let current = || current(root, entry, path, found);
        match &planned {
            Err(Unchanged::Left(_)) => {
                let now = current();
                // A broken file that names a path for sure says so.
                if now.is_err() {
                    self.add_listed(resource, |_| Ok(found.bytes().to_vec()));
                }
                self.add_listed(resource, |_| now);
            }
            Err(Unchanged::GoneBut(_)) => self.add(path, current()),
            // Nothing in the file is managed any more, and it may name another part.
            Err(Unchanged::Gone) => self.add(path, current()),
            Ok(change) => {
                if let Some(bytes) = change.target.bytes() {
                    self.add(path, Ok(bytes.to_vec()));
                } else if change.target.is_gone()
                    && let Some(text) = self.hold(path)
                {
                    return Err(Unchanged::Left(text));
                }
            }
            Err(_) => {}
        }
        planned
    }
}

impl Change {
    /// Whether the path's new content names `what`.
    #[must_use]
    pub fn leaves_named(&self, what: &Path) -> bool {
        self.target.bytes().is_some_and(|bytes| named_in(bytes, what))
    }
}

/// The present content at an entry's path, or why it is not known. Devices and unpacked folders name nothing.
fn current(root: &Root, entry: &Entry, path: &Path, found: &Found) -> Result<Vec<u8>, String> {
    if !matches!(entry.managed, Managed::Owned { .. } | Managed::Edited { .. }) {
        return Ok(found.bytes().to_vec());
    }
    let bytes = match found {
        Found::File { bytes, .. } => bytes.clone(),
        Found::Else(other @ (State::Node { .. } | State::Other { .. })) => {
            return Err(format!("{other} is there, not a file"));
        }
        Found::Else(_) if !found.is_absent() && found.state() == entry.before => Vec::new(),
        // The target of a link counts, too: a person may have moved the file there.
        Found::Else(_) => read(root, path)?,
    };
    // A person who corrects a broken file may make the runtime its default.
    if let Managed::Edited { edit, .. } = &entry.managed
        && !bytes.trim_ascii().is_empty()
    {
        let text = std::str::from_utf8(&bytes).map_err(|error| error.to_string())?;
        edit.format.read(text).map_err(|fault| fault.to_string())?;
    }
    Ok(bytes)
}

/// The bytes of a file, none where there is neither a file nor a link to one, or why they cannot be read.
pub(crate) fn read(root: &Root, path: &Path) -> Result<Vec<u8>, String> {
    match root.read(path, LIMIT) {
        Err(root::Error::Io { errno: Errno::ENOENT | Errno::ENOTDIR, .. }) if !is_lost(root, path) => {
            Ok(Vec::new())
        }
        read => read.map_err(|error| error.to_string()),
    }
}

/// Whether a link at a path, or on the way to it, leads to nothing, such as a disk that is not mounted.
fn is_lost(root: &Root, path: &Path) -> bool {
    let nearest = path.ancestors().find(|place| root.lstat(place).is_ok());
    nearest.is_some_and(|place| root.stat(place).is_err())
}

/// The files of these that name a path, or cannot be read, with the reason.
#[must_use]
pub fn naming(root: &Root, files: &[PathBuf], path: &Path) -> Vec<Finding> {
    let of_file = |file: &PathBuf| {
        let text = match read(root, file) {
            Ok(bytes) => named_in(&bytes, path)
                .then(|| format!("it names {}, which is about to go: take that out", path.display()))?,
            Err(error) => format!("it may name {}: {error}", path.display()),
        };
        Some(Finding { path: file.into(), text })
    };
    files.iter().filter_map(of_file).collect()
}

/// Whether a file names a path outside of comments: a comment keeps nothing from working.
pub(super) fn named_in(bytes: &[u8], path: &Path) -> bool {
    // A program knows what to do without a file that it looks for.
    if bytes.starts_with(b"\x7fELF") {
        return false;
    }
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

/// A whole line, as systemd has them (systemd.syntax(7)); a script's first line names what runs it.
fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with([';', '#']) && !line.starts_with("#!")
}
