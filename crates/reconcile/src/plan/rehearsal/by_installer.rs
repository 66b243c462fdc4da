//! What an installer would do, as far as apt can tell before it is there.

use std::path::Path;

use root::Root;
use tempfile::TempDir;

use super::{Folder, is_telling};
use crate::apt::dpkg::Status;
use crate::apt::{Installer, PackageManager};
use crate::model::{Change, State};

/// An installer's own package, for apt to simulate.
pub(super) struct Fetched {
    /// In a folder that goes with this value.
    pub(super) path: String,
    _dir: TempDir,
}

/// Whether the program is there, and can tell what it would have apt do.
pub(super) fn is_there(change: &Change) -> bool {
    matches!(change.from, State::Package { status: Status::Installed, .. })
}

/// The package's file, fetched as an apply would, into a folder of its own.
pub(super) fn fetched(hands: &PackageManager, name: &str, installer: &Installer) -> Result<Fetched, String> {
    // Open to all: apt fetches and reads packages as a user of its own.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    let dir = tempfile::Builder::new().prefix("rocworker-apt-").permissions(open).tempdir();
    let dir = dir.map_err(|error| format!("no folder can be made for {}: {error}", installer.url))?;
    let root = Root::open(dir.path()).map_err(|error| error.to_string())?;
    let path = installer.fetch(&root, hands, name, &mut |_| {})?;
    Ok(Fetched { path: path.display().to_string(), _dir: dir })
}

/// What apt cannot simulate of it: its program says to apt what to install, and that does not run from a file.
pub(super) fn untold(name: &str, installer: &Installer) -> String {
    format!(
        "what {} installs is not simulated: the program and the repositories that it takes packages from come with {name}, \
         which is not there yet; apply simulates it once they are there, and ends before it runs where it would replace or \
         remove anything",
        installer.argv.join(" ")
    )
}

impl Folder {
    /// apt's own lines of what a program would do that is there. What it has apt read goes into this folder.
    pub(super) fn simulated(
        &self,
        hands: &PackageManager,
        installer: &Installer,
    ) -> Result<Vec<String>, String> {
        let mut text = hands.configuration(true);
        for (key, value) in self.options().iter().filter_map(|option| option.split_once('=')) {
            text.push_str(&format!("{key} \"{value}\";\n"));
        }
        let path = self.path(Path::new("/apt.conf"));
        let written = Root::open(Path::new("/")).and_then(|root| {
            let how = root::Attributes { mode: 0o644, owner: None };
            root.write(&path, text.as_bytes(), how)
        });
        written.map_err(|error| error.to_string())?;
        let said = hands.program(&installer.argv, &path.display().to_string(), &mut |_| {})?;
        Ok(said.lines().filter(is_telling).map(str::to_owned).collect())
    }
}
