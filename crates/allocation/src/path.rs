//! Paths as the programs that get them understand them.

use std::borrow::Cow;

/// The path as runc joins it to the root folder or to a cgroup hierarchy: absolute, without `.`, `..` and doubled slashes.
pub(crate) fn clean(path: &str) -> Cow<'_, str> {
    // Nearly all are.
    let mut pairs = path.as_bytes().windows(2);
    if path.starts_with('/') && !path.ends_with('/') && !pairs.any(|pair| matches!(pair, b"//" | b"/.")) {
        return Cow::Borrowed(path);
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Cow::Owned(format!("/{}", parts.join("/")))
}
