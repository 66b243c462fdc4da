//! What an archive has put into its folder, kept beside the receipt: so that undo tells it from what somebody has put
//! there since.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use root::{Attributes, Kind, Root};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::Error;
use crate::model::Ours;
use crate::receipt::Receipt;

/// Where manifests are kept, each under the SHA-256 of its archive.
const FOLDER: &str = "/var/lib/rocworker/unpacked";

/// A hundred bytes for each of half a million files.
const LIMIT: usize = 64 << 20;

const VERSION: u32 = 1;

/// Every path of a folder, named from it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    schema_version: u32,
    entries: BTreeMap<PathBuf, Mark>,
}

/// What stands at a path of it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Mark {
    Folder,
    File {
        size: i64,
        /// Of its bytes, in seconds since 1970: the archive's.
        changed: i64,
    },
    Link {
        target: PathBuf,
    },
    /// A node, fifo or socket: no archive brings one.
    Other,
}

/// A manifest's file.
fn name(sha256: &Digest) -> PathBuf {
    Path::new(FOLDER).join(format!("{}.json", sha256.as_str()))
}

/// Takes away the manifests that no entry names any more. What cannot go is told by nobody: it is in our own folder.
pub(crate) fn sweep(root: &Root, receipt: &Receipt) {
    let is_named = |path: &Path| {
        let mut entries = receipt.entries.iter();
        entries.any(|entry| matches!(&entry.ours, Ours::Unpacked { sha256, .. } if name(sha256) == path))
    };
    for name in root.list(FOLDER).unwrap_or_default() {
        let path = Path::new(FOLDER).join(name);
        if !is_named(&path) {
            root.remove(path).ok();
        }
    }
    root.remove_empty_folder(FOLDER).ok();
}

impl Manifest {
    /// What is in a folder now.
    ///
    /// # Errors
    /// When something of it cannot be looked at, or is neither a file nor a folder nor a link.
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
    /// When it is not there, cannot be believed, or is of a newer version.
    pub(crate) fn read(root: &Root, sha256: &Digest) -> Result<Self, Error> {
        let path = name(sha256);
        let lost = |problem: String| Error::Lost { path: root.shown(&path), problem };
        let text = root.read_trusted(&path, LIMIT)?;
        let manifest: Self = serde_json::from_slice(&text).map_err(|error| lost(error.to_string()))?;
        if manifest.schema_version > VERSION {
            let (path, found) = (root.shown(&path), u64::from(manifest.schema_version));
            return Err(Error::Newer { path, found, known: VERSION });
        }
        Ok(manifest)
    }

    /// What is in the folder now and is not the archive's, or is not as the archive had it. What Python compiles beside
    /// its sources is nobody's.
    ///
    /// # Errors
    /// As [`Manifest::of`].
    pub(crate) fn strangers(&self, root: &Root, folder: &Path) -> Result<Vec<PathBuf>, root::Error> {
        let mut strangers: Vec<PathBuf> = Vec::new();
        walk(root, folder, Path::new(""), &mut |path, mark| {
            let is_known = self.entries.get(path) == Some(&mark) || is_compiled(path);
            // A folder of somebody's stands for what is in it.
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

/// Each path of a folder beneath `top`, named from there; what is in a folder comes behind it.
fn walk(
    root: &Root,
    top: &Path,
    folder: &Path,
    tell: &mut dyn FnMut(&Path, Mark),
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
        tell(&path, mark);
        if is_folder {
            walk(root, top, &path, tell)?;
        }
    }
    Ok(())
}
