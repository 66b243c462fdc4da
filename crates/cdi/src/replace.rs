use std::path::Path;

use config::CDI_SPEC;
use root::Root;
use serde::de::IgnoredAny;

use super::spec::KIND;
use super::{LIMIT, OnlyKind};

/// Whether a run may write a spec over what is at a path: nothing, or a spec of AMD's. `named_by_hand`: a run repairs a
/// file that is broken at the configured place; a path that a person typed may be a slip.
///
/// # Errors
/// Says what is at the path, if a run may not write over it.
pub fn may_replace(root: &Root, path: &Path, named_by_hand: bool) -> Result<(), String> {
    if root.lstat(path).is_err_and(|error| error.is_not_found()) {
        return Ok(());
    }
    let text = root.read_text(path, LIMIT).ok();
    let found = text.as_ref().and_then(|text| serde_json::from_str::<OnlyKind>(text).ok()?.kind);
    let is_json = || text.is_some_and(|text| serde_json::from_str::<IgnoredAny>(&text).is_ok());
    let shown = root.shown(path);
    let shown = shown.display();
    match found {
        Some(kind) if kind == KIND => Ok(()),
        Some(kind) => {
            Err(format!("{shown} holds the CDI spec of {kind}, which is left alone: name another file"))
        }
        None if named_by_hand || (path != Path::new(CDI_SPEC) && is_json()) => {
            Err(format!("{shown} is there and no CDI spec of {KIND}: name another file, or remove it"))
        }
        None => Ok(()),
    }
}
