//! A configuration file of an engine, in TOML.

use std::path::{Path, PathBuf};

use edit::Format;
use root::{Kind, Root};
use serde_json::{Map, Value};

/// More than any file has that people write; `containerd config default` makes 10 KB.
const LIMIT: usize = 8 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub path: PathBuf,
    /// `None`: it is not there. Or why it cannot be read, or must not be written.
    pub text: Result<Option<String>, String>,
    /// What it says, or why that is not known; nothing of a file that is not there.
    pub said: Result<Value, String>,
}

impl File {
    pub(super) fn read(root: &Root, path: PathBuf) -> Self {
        let is_link = |path: &Path| root.lstat(path).is_ok_and(|meta| meta.kind == Kind::Link);
        let link = path.ancestors().find(|path| is_link(path));
        let text = match root.read_text(&path, LIMIT) {
            Err(error) if error.is_not_found() && link.is_none() => Ok(None),
            read => read.map(Some).map_err(|error| error.to_string()),
        };
        // A link can still be followed for what it says.
        let said = text.clone().and_then(|text| {
            let said = Format::Toml.read(&text.unwrap_or_default());
            said.map_err(|fault| format!("{}: {fault}", root.shown(&path).display()))
        });
        let text = match link.map(|link| root.shown(link)) {
            Some(link) => Err(format!("{} is a link, and nothing is written through links", link.display())),
            None => text,
        };
        Self { path, text, said }
    }

    /// The table at this place. An engine does not start where another value is in its stead.
    pub(super) fn table(&self, keys: &[&str]) -> Result<Option<&Map<String, Value>>, String> {
        let mut table = self.said.as_ref().map_err(Clone::clone)?;
        for (at, key) in keys.iter().enumerate() {
            let Some(inner) = table.get(key) else { return Ok(None) };
            if !inner.is_object() {
                let name = keys.get(..=at).unwrap_or_default().join(".");
                return Err(format!("{}: {name} has to be a table", self.path.display()));
            }
            table = inner;
        }
        Ok(table.as_object())
    }
}
