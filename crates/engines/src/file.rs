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
    /// The file's text, or why it cannot be read or must not be written. `None`: the file is absent.
    pub text: Result<Option<String>, String>,
    /// The text as a value, or why it is unknown; an empty table of an absent file.
    pub parsed: Result<Value, String>,
}

impl File {
    pub(super) fn read(root: &Root, path: PathBuf) -> Self {
        let is_link = |path: &Path| root.lstat(path).is_ok_and(|meta| meta.kind == Kind::Link);
        let link = path.ancestors().find(|path| is_link(path));
        let text = match root.read_text(&path, LIMIT) {
            Err(error) if error.is_not_found() && link.is_none() => Ok(None),
            read => read.map(Some).map_err(|error| error.to_string()),
        };
        // What a link leads to can still be read.
        let parsed = text.clone().and_then(|text| {
            let parsed = Format::Toml.read(&text.unwrap_or_default());
            parsed.map_err(|fault| format!("{}: {fault}", root.shown(&path).display()))
        });
        let text = match link.map(|link| root.shown(link)) {
            Some(link) => Err(format!("{} is a link, and nothing is written through links", link.display())),
            None => text,
        };
        Self { path, text, parsed }
    }

    /// The table at this place. An engine does not start where another value is in its stead.
    pub(super) fn table(&self, keys: &[&str]) -> Result<Option<&Map<String, Value>>, String> {
        let mut table = self.parsed.as_ref().map_err(Clone::clone)?;
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
