use std::path::Path;

use root::Root;

use crate::attribute::{self, Reading};

const FOLDER: &str = "/sys/module/amdgpu";

/// The amdgpu kernel module as the running kernel knows it.
#[derive(Debug, Clone)]
pub struct Module {
    /// Live, built in (which has no `initstate`), or bound to a card. Unknown where its state cannot be read.
    pub loaded: Reading<bool>,
    /// Only a DKMS build names one.
    pub version: Reading<String>,
    pub srcversion: Reading<String>,
}

impl Module {
    /// `is_bound`: a card is bound to amdgpu, which none can be without it.
    #[must_use]
    pub fn read(root: &Root, is_bound: bool) -> Self {
        let attribute = |name| attribute::text(root, &Path::new(FOLDER).join(name));
        let loaded = if is_bound { Ok(true) } else { loaded(root) };
        Self { loaded, version: attribute("version"), srcversion: attribute("srcversion") }
    }
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
