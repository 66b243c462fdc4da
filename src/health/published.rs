//! The daemon's file, [`allocation::health::PATH`].

use std::path::Path;

use allocation::document::Document as _;
use allocation::health::{Health, PATH};
use root::Root;

/// More than the daemon writes.
const LIMIT: usize = 1 << 20;

/// What the daemon wrote last, however old; `None` where it wrote nothing. [`Health::at`] says whether it counts now.
///
/// # Errors
/// A sentence: the file is damaged, another version's, or another user could have written it.
pub fn read(root: &Root) -> Result<Option<Health>, String> {
    let folder = Path::new(PATH).parent().unwrap_or(Path::new("/"));
    root.believe_folder(folder).map_err(|error| error.to_string())?;
    let bytes = match root.read_trusted(PATH, LIMIT) {
        Err(error) if error.is_not_found() => return Ok(None),
        other => other.map_err(|error| error.to_string())?,
    };
    let shown = root.shown(PATH);
    let text = String::from_utf8(bytes).map_err(|_| format!("{} is not text", shown.display()))?;
    Health::parse(&text).map(Some).map_err(|error| format!("{} {error}", shown.display()))
}
