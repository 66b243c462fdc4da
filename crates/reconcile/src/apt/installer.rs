//! A package that comes as a file, with a program that installs the rest: AMD's `amdgpu-install`.

use std::path::{Path, PathBuf};

use root::{Attributes, Root};

use super::fetch::{ARCHIVE, FOLDER};
use super::sources::{Known, PARTS, in_file};
use super::{PackageManager, Step};
use crate::digest::Digest;

/// An installer has some kibibytes, and what it installs comes from repositories.
const LIMIT: usize = 64 << 20;

/// A package that no repository has: its source, and the program to run after its installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installer {
    /// The URL of the package's file.
    pub url: String,
    /// `None`: the file is trusted because of its server alone.
    pub sha256: Option<Digest>,
    /// The program in the package, and its arguments. It runs apt, which reads `APT_CONFIG`.
    pub argv: Vec<String>,
}

impl Installer {
    /// The package's file, fetched and checked to be the package of this name.
    pub(crate) fn fetch(
        &self,
        root: &Root,
        manager: &PackageManager,
        name: &str,
        hear: &mut dyn FnMut(Step),
    ) -> Result<PathBuf, String> {
        let url = &self.url;
        manager.fetch_archive(root, url, hear)?;
        let refused = |problem: String| format!("what came from {url} is not used: {problem}");
        let bytes = root.read(ARCHIVE, LIMIT).map_err(|error| refused(error.to_string()))?;
        if let Some(wanted) = &self.sha256 {
            wanted.check(&Digest::of(&bytes)).map_err(refused)?;
        }
        // apt distinguishes a file from a package's name by its suffix, and reads it as a user of its own.
        let path = Path::new(FOLDER).join("package.deb");
        let how = Attributes { mode: 0o644, owner: None };
        root.write(&path, &bytes, how).map_err(|error| error.to_string())?;
        let path = root.shown(path);
        let shown = path.display().to_string();
        let says = manager.run(&["dpkg-deb", "--field", &shown, "Package"], &mut |_| {}).map_err(refused)?;
        if says.trim() != name {
            return Err(refused(format!("it is the package {}, and {name} was expected", says.trim())));
        }
        Ok(path)
    }
}

/// The repositories that a package has installed, none where dpkg-query does not say.
pub(crate) fn repositories(root: &Root, manager: &PackageManager, package: &str) -> Vec<Known> {
    let list = manager.run(&["dpkg-query", "--listfiles", package], &mut |_| {}).unwrap_or_default();
    let files = list.lines().map(Path::new).filter(|path| path.parent() == Some(Path::new(PARTS)));
    files.flat_map(|path| in_file(root, path)).collect()
}
