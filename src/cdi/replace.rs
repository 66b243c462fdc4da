use std::path::{Path, PathBuf};

use root::Root;

use super::spec::KIND;
use super::{LIMIT, OnlyKind};

/// Why a file that is there is not replaced by a spec.
#[derive(Debug, thiserror::Error)]
pub enum NotOurs {
    #[error("{} holds the CDI spec of {kind}, which is left alone: name another file", path.display())]
    OtherKind { path: PathBuf, kind: String },
    #[error("{} is there and no CDI spec of {KIND}: name another file, or remove it", path.display())]
    NoSpec { path: PathBuf },
}

/// Where nothing but a spec of AMD's belongs: what is broken there is there to be put right.
const DEFAULT: &str = "/etc/cdi/amd.json";

/// Somebody's document, for whatever it is.
fn is_json(root: &Root, path: &Path) -> bool {
    let text = root.read_text(path, LIMIT).ok();
    text.is_some_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok())
}

/// Whether a spec may be written over what stands at a path: nothing, or a spec of AMD's. `named_by_hand`: at the
/// configured place a file that is broken is there to be put right; a path that somebody typed may be a slip.
///
/// # Errors
/// Says what stands there.
pub fn may_replace(root: &Root, path: &Path, named_by_hand: bool) -> Result<(), NotOurs> {
    if root.lstat(path).is_err_and(|error| error.is_not_found()) {
        return Ok(());
    }
    let text = root.read_text(path, LIMIT).ok();
    let found = text.and_then(|text| serde_json::from_str::<OnlyKind>(&text).ok()?.kind);
    match found {
        Some(kind) if kind == KIND => Ok(()),
        Some(kind) => Err(NotOurs::OtherKind { path: root.shown(path), kind }),
        None if named_by_hand || (path != Path::new(DEFAULT) && is_json(root, path)) => {
            Err(NotOurs::NoSpec { path: root.shown(path) })
        }
        None => Ok(()),
    }
}
