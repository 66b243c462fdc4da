//! What apt would do, by its own simulation, before anything of the plan is written: what the repositories of the plan
//! offer is read into a folder that goes again.

use std::path::{Path, PathBuf};

use root::{Attributes, Root};
use serde::Serialize;
use tempfile::TempDir;

use super::Plan;
use crate::apt::dpkg::Status;
use crate::apt::{Installer, PackageManager, SIMULATED, lists, wanted as exactly};
use crate::error::if_there;
use crate::model::{Change, Doing, Effect, Resource, State, Target};

const KEYRINGS: &str = "/etc/apt/keyrings";
const SOURCES: &str = "/etc/apt/sources.list.d";
const PREFERENCES: &str = "/etc/apt/preferences.d";

/// What apt says that it would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rehearsal {
    /// apt's own lines: `Inst`, `Remv`, `Conf`.
    pub lines: Vec<String>,
    /// Why that is not the whole of it.
    pub problems: Vec<String>,
}

/// A folder that stands for apt's own.
struct Folder(TempDir);

/// apt reads as a user of its own.
const READABLE: Attributes = Attributes { mode: 0o644, owner: None };

impl Plan {
    /// What apt would do for the packages of this plan, all of them at once. Changes nothing: repositories are asked,
    /// and what they answer is forgotten. `None`: no package is to come or go.
    #[must_use]
    pub fn rehearse(&self, root: &Root, manager: &PackageManager) -> Option<Rehearsal> {
        let mut wanted = Vec::new();
        let mut goes = Vec::new();
        let (mut files, mut installers) = (Vec::new(), Vec::new());
        let mut rehearsal = Rehearsal::default();
        for change in &self.changes {
            let (Target::Package(doing), Resource::Package(name)) = (&change.target, &change.path) else {
                continue;
            };
            match doing {
                Doing::Install { version } => wanted.push(exactly(name, version.as_deref())),
                Doing::InstallBy(installer) if is_there(change) => installers.push(installer),
                Doing::InstallBy(installer) => {
                    rehearsal.problems.push(untold(name, installer));
                    match fetched(manager, name, installer) {
                        Ok(file) => {
                            wanted.push(file.path.clone());
                            files.push(file);
                        }
                        Err(problem) => rehearsal.problems.push(problem),
                    }
                }
                Doing::Remove { names, .. } => goes.extend(names.iter().map(|name| format!("{name}-"))),
            }
        }
        let packages = [wanted, goes].concat();
        if packages.is_empty() && installers.is_empty() {
            return Some(rehearsal).filter(|it| !it.problems.is_empty());
        }
        let folder = match Folder::of(root, &self.changes) {
            Ok(folder) => folder,
            Err(problem) => {
                rehearsal.problems.push(problem);
                return Some(rehearsal);
            }
        };
        let ours = (!packages.is_empty())
            .then(|| self.rehearsed(&folder, manager, &packages, &mut rehearsal.problems));
        let programs: Vec<_> =
            installers.iter().map(|installer| folder.simulated(manager, installer)).collect();
        for lines in ours.into_iter().chain(programs) {
            match lines {
                Ok(lines) => rehearsal.lines.extend(lines),
                Err(problem) => rehearsal.problems.push(problem),
            }
        }
        Some(rehearsal)
    }

    fn rehearsed(
        &self,
        folder: &Folder,
        manager: &PackageManager,
        packages: &[String],
        problems: &mut Vec<String>,
    ) -> Result<Vec<String>, String> {
        folder.fetch(manager, &self.changes, problems);
        let options = folder.options();
        let options: Vec<&str> = options.iter().flat_map(|option| ["-o", option.as_str()]).collect();
        for (source, effect) in new_sources(&self.changes) {
            if let Err(error) = manager.update(&folder.path(source), &options) {
                problems.push(format!("{effect}: {error}"));
            }
        }
        let names: Vec<&str> = packages.iter().map(String::as_str).collect();
        let said =
            manager.apt_get(&[&options[..], &SIMULATED, &["install"], &names].concat(), &mut |_| {})?;
        Ok(said.lines().filter(is_telling).map(str::to_owned).collect())
    }
}

/// An installer's own package, for apt to simulate.
struct Fetched {
    /// In a folder that goes with this value.
    path: String,
    _dir: TempDir,
}

/// Whether the program is there, and can tell what it would have apt do.
fn is_there(change: &Change) -> bool {
    matches!(change.from, State::Package { status: Status::Installed, .. })
}

/// The package's file, fetched as an apply would, into a folder of its own.
fn fetched(manager: &PackageManager, name: &str, installer: &Installer) -> Result<Fetched, String> {
    // Open to all: apt fetches and reads packages as a user of its own.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    let dir = tempfile::Builder::new().prefix("rocworker-apt-").permissions(open).tempdir();
    let dir = dir.map_err(|error| format!("no folder can be made for {}: {error}", installer.url))?;
    let root = Root::open(dir.path()).map_err(|error| error.to_string())?;
    let path = installer.fetch(&root, manager, name, &mut |_| {})?;
    Ok(Fetched { path: path.display().to_string(), _dir: dir })
}

/// What apt cannot simulate of it: its program says to apt what to install, and that does not run from a file.
fn untold(name: &str, installer: &Installer) -> String {
    format!(
        "what {} installs is not simulated: the program and the repositories that it takes packages from come with {name}, \
         which is not there yet; apply simulates it once they are there, and ends before it runs where it would replace or \
         remove anything",
        installer.argv.join(" ")
    )
}

/// Whether a line of a simulation tells what would be done.
fn is_telling(line: &&str) -> bool {
    ["Inst ", "Remv ", "Purg ", "Conf "].iter().any(|verb| line.starts_with(verb))
}

/// Sources that the plan writes, each with what is announced of it.
fn new_sources(changes: &[Change]) -> impl Iterator<Item = (&Path, &Effect)> {
    let is_read = |effect: &&Effect| matches!(effect, Effect::AptUpdate { .. });
    let written = changes.iter().filter(|change| matches!(change.target, Target::File { .. }));
    written.filter_map(move |change| Some((change.path.path()?, change.effects.iter().find(is_read)?)))
}

/// The changes of files beneath a folder.
fn beneath<'a>(folder: &str, changes: &'a [Change]) -> impl Iterator<Item = (&'a Path, &'a Change)> {
    let paths = changes.iter().filter_map(|change| Some((change.path.path()?, change)));
    paths.filter(move |(path, _)| path.starts_with(folder))
}

impl Folder {
    /// With links to what is there, and the files that the plan writes for apt.
    fn of(root: &Root, changes: &[Change]) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("rocworker-apt-").tempdir().map(Self);
        let folder =
            folder.map_err(|error| format!("no folder can be made for what repositories offer: {error}"))?;
        folder.fill(root, changes).map_err(|error| error.to_string())?;
        Ok(folder)
    }

    fn fill(&self, root: &Root, changes: &[Change]) -> Result<(), root::Error> {
        let written: Vec<(&Path, &Change)> = beneath("/etc/apt", changes).collect();
        for place in [SOURCES, PREFERENCES, lists::FOLDER] {
            for name in if_there(root.list(place))?.unwrap_or_default() {
                let path = Path::new(place).join(name);
                let is_file = root.stat(&path).is_ok_and(|meta| meta.kind == root::Kind::Regular);
                let is_ours = written.iter().any(|(written, _)| *written == path);
                if is_file && !is_ours && !path.ends_with("lock") {
                    root.write_link(self.path(&path), &path)?;
                }
            }
        }
        for (path, change) in written {
            let Target::File { bytes, .. } = &change.target else { continue };
            root.write(self.path(path), &self.moved(bytes, changes), READABLE)?;
        }
        root.write(self.path(Path::new(&format!("{}/partial/.made", lists::FOLDER))), b"", READABLE)?;
        Ok(())
    }

    /// The keys that the plan would fetch: without them no repository is believed.
    fn fetch(&self, manager: &PackageManager, changes: &[Change], problems: &mut Vec<String>) {
        for (path, change) in beneath("/etc/apt", changes) {
            let Target::Fetched { url, check, .. } = &change.target else { continue };
            let fetched = manager.fetch(url, check, path).and_then(|bytes| {
                let root = Root::open(Path::new("/")).map_err(|error| error.to_string())?;
                root.write(self.path(path), &bytes, READABLE).map_err(|error| error.to_string())
            });
            problems.extend(fetched.err());
        }
    }

    /// A text in which keys that the plan writes are named as they stand here.
    fn moved(&self, bytes: &[u8], changes: &[Change]) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(bytes) else { return bytes.to_vec() };
        let moved = beneath(KEYRINGS, changes).fold(text.to_owned(), |text, (path, _)| {
            text.replace(&path.display().to_string(), &self.path(path).display().to_string())
        });
        moved.into_bytes()
    }

    fn path(&self, path: &Path) -> PathBuf {
        self.0.path().join(path.strip_prefix("/").unwrap_or(path))
    }

    fn options(&self) -> Vec<String> {
        let here = |path: &str| self.path(Path::new(path)).display().to_string();
        vec![
            format!("Dir::Etc::SourceParts={}", here(SOURCES)),
            format!("Dir::Etc::PreferencesParts={}", here(PREFERENCES)),
            format!("Dir::State::Lists={}", here(lists::FOLDER)),
            // What apt keeps for the next time is not for this one.
            "Dir::Cache::pkgcache=".to_owned(),
            "Dir::Cache::srcpkgcache=".to_owned(),
            // The folder is closed to the user as whom apt fetches.
            "APT::Sandbox::User=root".to_owned(),
        ]
    }

    /// apt's own lines of what a program would do that is there. What it has apt read goes into this folder.
    fn simulated(&self, manager: &PackageManager, installer: &Installer) -> Result<Vec<String>, String> {
        let mut text = manager.configuration(true);
        for (key, value) in self.options().iter().filter_map(|option| option.split_once('=')) {
            text.push_str(&format!("{key} \"{value}\";\n"));
        }
        let path = self.path(Path::new("/apt.conf"));
        let written =
            Root::open(Path::new("/")).and_then(|root| root.write(&path, text.as_bytes(), READABLE));
        written.map_err(|error| error.to_string())?;
        let said = manager.program(&installer.argv, &path.display().to_string(), &mut |_| {})?;
        Ok(said.lines().filter(is_telling).map(str::to_owned).collect())
    }
}
