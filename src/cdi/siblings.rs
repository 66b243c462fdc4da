use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use root::Root;

use super::{LIMIT, OnlyKind};

/// Where engines look by default (CDI spec, "CDI JSON Specification", default folders).
pub const DEFAULT_FOLDERS: [&str; 2] = ["/etc/cdi", "/var/run/cdi"];

/// The same, and what the second is on most machines, where /var/run is a link.
const FOLDERS: [&str; 3] = [DEFAULT_FOLDERS[0], DEFAULT_FOLDERS[1], "/run/cdi"];

/// Whether a spec at this path is loaded by engines that are configured as they come.
#[must_use]
pub fn is_read_by_engines(path: &Path) -> bool {
    path.parent().is_some_and(|folder| FOLDERS.iter().any(|known| Path::new(known) == folder))
}

/// Other specs of the same kind, in the default folders and beside `path`: two of a kind that name one device
/// void both.
#[must_use]
pub fn same_kind(root: &Root, path: &Path, kind: &str) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    // /var/run is a link to /run on most machines: one folder, not two.
    let mut is_new =
        |folder: &Path| seen.insert(root.without_links(folder).unwrap_or_else(|| folder.to_owned()));
    let folders = path.parent().into_iter().chain(FOLDERS.map(Path::new));
    let files = folders.filter(|folder| is_new(folder)).flat_map(|folder| {
        let names = root.list(folder).unwrap_or_default();
        names.into_iter().map(|name| folder.join(name))
    });
    files.filter(|file| file != path && kind_of(root, file).as_deref() == Some(kind)).collect()
}

/// The kind of a spec; `None` for what is not read as one.
fn kind_of(root: &Root, file: &Path) -> Option<String> {
    // Engines load these two endings and no other.
    if !matches!(file.extension()?.to_str()?, "json" | "yaml") {
        return None;
    }
    // YAML reads JSON too.
    let text = root.read_text(file, LIMIT).ok()?;
    yaml_serde::from_str::<OnlyKind>(&text).ok()?.kind
}
