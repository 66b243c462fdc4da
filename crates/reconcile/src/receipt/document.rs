//! Stored documents with a schema_version, and the folders in which rocworker keeps files by name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use root::{Attributes, Root};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, if_there};
use crate::model::LIMIT;

/// Reads a stored document; `None` where there is none.
///
/// # Errors
/// When the file cannot be read or believed, or was written by a newer version. `damaged`: when it is no
/// document.
pub(crate) fn read_document<T: DeserializeOwned>(
    root: &Root,
    path: &Path,
    known: u32,
    damaged: impl Fn(PathBuf, String) -> Error,
) -> Result<Option<T>, Error> {
    #[derive(Deserialize)]
    struct Versioned {
        schema_version: u64,
    }
    let Some(text) = if_there(root.read_trusted(path, LIMIT))? else { return Ok(None) };
    let broken = |error: serde_json::Error| damaged(root.shown(path), error.to_string());
    let Versioned { schema_version: found } = serde_json::from_slice(&text).map_err(broken)?;
    match found {
        0 => Err(damaged(root.shown(path), "there never was a schema_version 0".to_owned())),
        found if found > u64::from(known) => Err(Error::Newer { path: root.shown(path), found, known }),
        _ => serde_json::from_slice(&text).map(Some).map_err(broken),
    }
}

/// Writes a document for people to read, too: it holds no secrets.
pub(crate) fn write_document(root: &Root, path: &str, document: &impl Serialize) -> Result<(), Error> {
    let mut text = serde_json::to_vec_pretty(document).map_err(Error::Json)?;
    text.push(b'\n');
    root.write(path, &text, Attributes { mode: 0o644, owner: None })?;
    Ok(())
}

/// Removes the files of a folder that are not among these, and the folder once it is empty.
pub(crate) fn sweep_folder(root: &Root, folder: &str, named: &BTreeSet<PathBuf>) {
    let Ok(names) = root.list(folder) else { return };
    for name in names {
        let path = Path::new(folder).join(name);
        if !named.contains(&path) {
            root.remove(path).ok();
        }
    }
    root.remove_empty_folder(folder).ok();
}
