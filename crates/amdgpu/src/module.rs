use std::path::Path;

use root::Root;

use crate::attribute::{self, Reading};

const FOLDER: &str = "/sys/module/amdgpu";

/// The amdgpu kernel module as the running kernel knows it.
#[derive(Debug, Clone)]
pub struct Module {
    /// Live, or built in (which has no `initstate`).
    pub loaded: bool,
    /// Only a DKMS build names one.
    pub version: Reading<String>,
    pub srcversion: Reading<String>,
}

impl Module {
    pub(crate) fn read(root: &Root) -> Self {
        let folder = Path::new(FOLDER);
        let attribute = |name| attribute::text(root, &folder.join(name));
        let loaded = root.exists(folder) && attribute("initstate").map_or(true, |state| state == "live");
        Self { loaded, version: attribute("version"), srcversion: attribute("srcversion") }
    }
}
