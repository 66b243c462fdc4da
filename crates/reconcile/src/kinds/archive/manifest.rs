//! The manifest of an unpacked archive, kept beside the receipt: with it undo distinguishes the archive's
//! files from later ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use root::{Attributes, Kind, Root};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::Error;
use crate::model::Managed;
use crate::receipt::{Receipt, read_document, sweep_folder};

/// The folder of manifests; each is named by the SHA-256 of its archive.
const FOLDER: &str = "/var/lib/rocworker/unpacked";

const VERSION: u32 = 1;

/// Every path beneath a folder, relative to it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    schema_version: u32,
    entries: BTreeMap<PathBuf, Mark>,
}

/// What is at a path of the folder.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Mark {
    Folder,
    File {
        size: i64,
        /// When the file's bytes were last changed, in seconds since 1970: the archive sets it.
        changed: i64,
    },
    Link {
        target: PathBuf,
    },
    /// A node, fifo or socket: no archive contains one.
    Other,
}

/// A manifest's file.
fn name(sha256: &Digest) -> PathBuf {
    Path::new(FOLDER).join(format!("{}.json", sha256.as_str()))
}

/// Removes the manifests that no entry names any more. One that cannot go hinders nothing, in rocworker's own folder.
pub(crate) fn sweep(root: &Root, receipt: &Receipt) {
    let named = receipt.entries.iter().filter_map(|entry| match &entry.managed {
        Managed::Unpacked { sha256, .. } => Some(name(sha256)),
        _ => None,
    });
    sweep_folder(root, FOLDER, &named.collect());
}

impl Manifest {
    /// Lists what is in a folder now.
    ///
    /// # Errors
    /// When a path cannot be examined, or is no file, folder or link.
    pub(crate) fn of(root: &Root, folder: &Path) -> Result<Self, root::Error> {
        let mut entries = BTreeMap::new();
        walk(root, folder, Path::new(""), &mut |path, mark| {
            entries.insert(path.to_owned(), mark);
        })?;
        Ok(Self { schema_version: VERSION, entries })
    }

    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.entries.iter().filter(|(_, mark)| **mark == Mark::Folder).map(|(path, _)| path.as_path())
    }

    pub(crate) fn save(&self, root: &Root, sha256: &Digest) -> Result<(), Error> {
        let mut text = serde_json::to_vec(self).map_err(Error::Json)?;
        text.push(b'\n');
        root.write(name(sha256), &text, Attributes { mode: 0o644, owner: None })?;
        Ok(())
    }

    /// # Errors
    /// When the manifest is not there, cannot be believed, or is of a newer version.
    pub(crate) fn read(root: &Root, sha256: &Digest) -> Result<Self, Error> {
        let path = name(sha256);
        let lost = |problem: String| Error::Lost { path: root.shown(&path), problem };
        read_document(root, &path, VERSION, |_, problem| lost(problem))?
            .ok_or_else(|| lost("it is not there any more".to_owned()))
    }

    /// Paths of the folder that the archive did not contain, or contained otherwise. Files that Python
    /// compiles beside its sources do not count.
    ///
    /// # Errors
    /// Fails where [`Manifest::of`] fails.
    pub(crate) fn strangers(&self, root: &Root, folder: &Path) -> Result<Vec<PathBuf>, root::Error> {
        let mut strangers: Vec<PathBuf> = Vec::new();
        walk(root, folder, Path::new(""), &mut |path, mark| {
            let is_known = self.entries.get(path) == Some(&mark) || is_compiled(path);
            // An added folder is named, not each path in it.
            if !is_known && !strangers.last().is_some_and(|last| path.starts_with(last)) {
                strangers.push(path.to_owned());
            }
        })?;
        Ok(strangers)
    }
}

fn is_compiled(path: &Path) -> bool {
    path.iter().any(|part| part == "__pycache__") || path.extension().is_some_and(|it| it == "pyc")
}

/// Visits each path of a folder beneath `top`, relative to it; a folder comes before its content.
fn walk(
    root: &Root,
    top: &Path,
    folder: &Path,
    visit: &mut dyn FnMut(&Path, Mark),
) -> Result<(), root::Error> {
    for name in root.list(top.join(folder))? {
        let path = folder.join(name);
        let place = top.join(&path);
        let meta = root.lstat(&place)?;
        let mark = match meta.kind {
            Kind::Directory => Mark::Folder,
            Kind::Link => Mark::Link { target: root.read_link(&place)? },
            Kind::Regular => Mark::File { size: meta.len, changed: meta.modified_s },
            Kind::Character { .. } | Kind::Other => Mark::Other,
        };
        let is_folder = mark == Mark::Folder;
        visit(&path, mark);
        if is_folder {
            walk(root, top, &path, visit)?;
        }
    }
    Ok(())
}
