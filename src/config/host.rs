//! What is wanted of the machine itself.

use std::collections::BTreeMap;

use reconcile::Restarts;
use serde::Deserialize;

use super::{Error, Source};

/// Who may open /dev/kfd and the render nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
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

    /// As the configuration spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Render => "render",
            Self::Open => "open",
        }
    }
}

/// What is done with what runs when its configuration has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Restart {
    Never,
    /// Once its work is done.
    #[default]
    Drain,
    Now,
}

impl From<Restart> for Restarts {
    fn from(restart: Restart) -> Self {
        match restart {
            Restart::Never => Self::Never,
            Restart::Drain => Self::Drain,
            Restart::Now => Self::Now,
        }
    }
}

/// Parameters of the kernel module, by name.
pub type ModuleOptions = BTreeMap<String, String>;

/// A value in YAML may be a bare number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Value {
    Number(i64),
    Text(String),
}

pub(super) fn module_options(
    options: Option<BTreeMap<String, Value>>,
    source: &Source,
) -> Result<ModuleOptions, Error> {
    let mut checked = BTreeMap::new();
    for (name, value) in options.unwrap_or_default() {
        let value = match value {
            Value::Number(number) => number.to_string(),
            Value::Text(text) => text,
        };
        // They end on one line of modprobe.d, where a blank or a backslash would begin something else.
        let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ',' | '.' | ':' | ';' | '/');
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name || value.is_empty() || !value.chars().all(fit) {
            let problem = format!("module-options: {name}={value} is not a parameter as modprobe.d takes it");
            return Err(source.wrong("module-options", Some(&name), problem));
        }
        checked.insert(name, value);
    }
    Ok(checked)
}
