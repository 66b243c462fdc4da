//! What is wanted of the machine itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Error, Source};

/// Who may open /dev/kfd and the render nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permissions {
    /// 0660, group render.
    #[default]
    Render,
    /// 0666: everybody.
    Open,
}

impl Permissions {
    /// Permission bits of the nodes.
    #[must_use]
    pub fn mode(self) -> u32 {
        match self {
            Self::Render => 0o660,
            Self::Open => 0o666,
        }
    }

    /// The word that the configuration has for this.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Render => "render",
            Self::Open => "open",
        }
    }
}

/// Parameters of the kernel module, by name.
pub type ModuleOptions = BTreeMap<String, String>;

pub(super) fn module_options(options: ModuleOptions, source: &Source) -> Result<ModuleOptions, Error> {
    // Module options end on one line of modprobe.d, where a blank or a backslash would begin something else.
    let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ',' | '.' | ':' | ';' | '/');
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    for (name, value) in &options {
        if !is_name(name) || value.is_empty() || !value.chars().all(fit) {
            let problem = format!(
                "module-options: {name:?}={value:?} is no parameter of a kernel module: a name has letters, digits and _, a \
                 value no blank"
            );
            return Err(source.wrong("module-options", Some(name), problem));
        }
    }
    Ok(options)
}
