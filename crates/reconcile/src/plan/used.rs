//! A setting of somebody's that names what is ours: an engine whose default runtime is the one that goes would not
//! start again.

use std::path::PathBuf;

use root::Root;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::edit::Format;
use crate::state::LIMIT;

/// A key of a file that would name nothing if it held this value and ours were gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    pub file: PathBuf,
    pub format: Format,
    pub key: Vec<String>,
    pub value: String,
}

/// The first of these that stands, as a reason not to take away what it names.
pub(super) fn standing(root: &Root, uses: &[Use]) -> Option<String> {
    let is_there = |it: &&Use| {
        let text = root.read_text(&it.file, LIMIT).ok();
        let document = text.and_then(|text| it.format.read(&text).ok());
        let value = document
            .as_ref()
            .and_then(|document| it.key.iter().try_fold(document, |value, key| value.get(key)));
        value.and_then(Value::as_str) == Some(&it.value)
    };
    let it = uses.iter().find(is_there)?;
    Some(format!(
        "{} says {} = {:?}, which would name nothing: change that first, then run this again",
        root.shown(&it.file).display(),
        it.key.last().map_or("", String::as_str),
        it.value
    ))
}
