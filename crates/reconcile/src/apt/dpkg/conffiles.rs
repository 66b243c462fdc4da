//! Files of a package's configuration that somebody has changed: those are not purged.

use std::path::PathBuf;

use md5::{Digest as _, Md5};
use root::Root;

use super::Database;

/// No file of a package's configuration is as large.
const LIMIT: usize = 64 << 20;

impl Database {
    /// The conffiles of a package that are not as dpkg installed them. One that somebody has taken away is none: there
    /// is nothing of theirs to lose. One that cannot be read counts as changed.
    pub(crate) fn changed_conffiles(&self, root: &Root, package: &str) -> Vec<PathBuf> {
        let Some(stanza) = self.stanza(package) else { return Vec::new() };
        let lines = stanza.field("Conffiles").unwrap_or_default().lines();
        let changed = |line: &str| {
            let mut words = line.split_whitespace();
            let (path, shipped) = (words.next()?, words.next()?);
            // `obsolete`: by an older version of the package, which counts all the same. `newconffile`: none is there.
            match root.read(path, LIMIT) {
                Ok(bytes) if hexadecimal(&Md5::digest(&bytes)) == shipped => None,
                Err(error) if error.is_not_found() => None,
                _ => Some(PathBuf::from(path)),
            }
        };
        lines.filter_map(changed).collect()
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
