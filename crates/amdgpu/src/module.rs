use std::path::Path;

use inventory::{Module, Reading};
use root::Root;

use crate::attribute;

const FOLDER: &str = "/sys/module/amdgpu";

/// Reads what the running kernel knows of amdgpu. `is_bound`: a card is bound to it, which none can be without it.
#[must_use]
pub fn read(root: &Root, is_bound: bool) -> Module {
    let attribute = |name| attribute::text(root, &Path::new(FOLDER).join(name));
    let loaded = if is_bound { Ok(true) } else { loaded(root) };
    Module { loaded, version: attribute("version"), srcversion: attribute("srcversion") }
}

fn loaded(root: &Root) -> Reading<bool> {
    if !root.exists(FOLDER) {
        return Ok(false);
    }
    let initstate = Path::new(FOLDER).join("initstate");
    if root.lstat(&initstate).is_err_and(|error| error.is_not_found()) {
        return Ok(true);
    }
    Ok(attribute::text(root, &initstate)? == "live")
}
