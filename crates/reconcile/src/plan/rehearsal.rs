//! Lets apt simulate what it would do, before anything of the plan is written. Lists of the plan's
//! repositories are read into a temporary folder.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use root::{Attributes, Root};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::Plan;
use crate::apt::dpkg::Status;
use crate::apt::{Installer, PackageManager, SIMULATED, lists};
use crate::error::if_there;
use crate::model::{Change, Content, Doing, Effect, Resource, State, Target};

const KEYRINGS: &str = "/etc/apt/keyrings";
const SOURCES: &str = "/etc/apt/sources.list.d";
const PREFERENCES: &str = "/etc/apt/preferences.d";

/// apt's answer to a simulation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehearsal {
    /// apt's own lines: `Inst`, `Remv`, `Conf`.
    pub lines: Vec<String>,
    /// Reasons why the lines are incomplete.
    pub problems: Vec<String>,
}

/// A folder that apt uses in place of its own.
struct Folder<'a> {
    dir: TempDir,
    root: &'a Root,
    manager: &'a PackageManager,
    changes: &'a [Change],
}

/// apt reads as a user of its own.
const READABLE: Attributes = Attributes { mode: 0o644, owner: None };

impl Plan {
    /// Simulates what apt would do for all packages of this plan at once. Changes nothing. `fetches`: whether apt may ask
    /// repositories that the plan adds, whose answers are dropped. `None`: no package is to come or go.
    #[must_use]
    pub fn rehearse(&self, root: &Root, manager: &PackageManager, fetches: bool) -> Option<Rehearsal> {
        let mut rehearsal = Rehearsal::default();
        let is_package = |change: &&Change| matches!(change.target, Target::Package(_));
        if !fetches && self.changes.iter().any(needs_network) && self.changes.iter().any(|it| is_package(&it))
        {
            rehearsal.problems.push(NOT_ASKED.to_owned());
            return Some(rehearsal);
        }
        let mut packages: Vec<String> = self.changes.iter().flat_map(Change::apt_arguments).collect();
        let mut installers = Vec::new();
        // The folders of fetched files, which go when this value is dropped.
        let mut fetched_into = Vec::new();
        for change in &self.changes {
            let (Target::Package(Doing::InstallBy(installer)), Resource::Package(name)) =
                (&change.target, &change.path)
            else {
                continue;
            };
            if is_there(change) {
                installers.push(installer);
                continue;
            }
            rehearsal.problems.push(not_simulated(name, installer));
            match fetched(manager, name, installer) {
                Ok((file, dir)) => {
                    packages.push(file);
                    fetched_into.push(dir);
                }
                Err(problem) => rehearsal.problems.push(problem),
            }
        }
        if packages.is_empty() && installers.is_empty() {
            return Some(rehearsal).filter(|it| !it.problems.is_empty());
        }
        let mut answers = Vec::new();
        match Folder::of(root, manager, &self.changes) {
            Err(problem) => rehearsal.problems.push(problem),
            Ok(folder) => {
                if !packages.is_empty() {
                    answers.push(folder.install(&packages, &mut rehearsal.problems));
                }
                answers.extend(
                    installers.iter().map(|it| manager.simulate_program(&it.argv, &folder.options())),
                );
            }
        }
        for answer in answers {
            match answer {
                Ok(answer) => rehearsal.lines.extend(answer.lines().filter(is_action).map(str::to_owned)),
                Err(problem) => rehearsal.problems.push(problem),
            }
        }
        Some(rehearsal)
    }
}

/// Where apt knows the packages only by what is fetched.
const NOT_ASKED: &str = "apt is not asked: it knows these packages once repositories are read, and a plan fetches nothing; `rocworker \
                         apply --dry-run` reads them and asks";

/// Whether a simulation needs what the change fetches: a repository's key or lists, or an installer's package.
fn needs_network(change: &Change) -> bool {
    change.effects.iter().any(|effect| matches!(effect, Effect::AptUpdate { .. }))
        || matches!(
            change.target,
            Target::Put(Content::Fetched { .. }) | Target::Package(Doing::InstallBy(_))
        )
}

/// Whether the installer's program is there, and can report what it would have apt do.
fn is_there(change: &Change) -> bool {
    matches!(change.from, State::Package { status: Status::Installed, .. })
}

/// The package's file, fetched as an apply would, into a folder of its own.
fn fetched(manager: &PackageManager, name: &str, installer: &Installer) -> Result<(String, TempDir), String> {
    // Open to all: apt fetches and reads packages as a user of its own.
    let open = std::fs::Permissions::from_mode(0o755);
    let dir = tempfile::Builder::new().prefix("rocworker-apt-").permissions(open).tempdir();
    let dir = dir.map_err(|error| format!("no folder can be made for {}: {error}", installer.url))?;
    let root = Root::open(dir.path()).map_err(|error| error.to_string())?;
    let path = installer.fetch(&root, manager, name, &mut |_| {})?;
    Ok((path.display().to_string(), dir))
}

/// A sentence on a package that apt cannot simulate: its program decides what apt installs, and cannot run
/// from the package's file.
fn not_simulated(name: &str, installer: &Installer) -> String {
    format!(
        "what {} installs is not simulated: the program and the repositories that it takes packages from come with {name}, \
         which is not there yet; apply simulates it once they are there, and ends before it runs where it would replace or \
         remove anything",
        installer.argv.join(" ")
    )
}

/// Whether a line of a simulation is an action of apt.
fn is_action(line: &&str) -> bool {
    ["Inst ", "Remv ", "Purg ", "Conf "].iter().any(|verb| line.starts_with(verb))
}

impl<'a> Folder<'a> {
    /// Makes the folder, with links to the machine's files of apt, and the files that the plan writes for
    /// apt.
    fn of(root: &'a Root, manager: &'a PackageManager, changes: &'a [Change]) -> Result<Self, String> {
        let dir = tempfile::Builder::new().prefix("rocworker-apt-").tempdir();
        let dir =
            dir.map_err(|error| format!("no folder can be made for what repositories offer: {error}"))?;
        let folder = Self { dir, root, manager, changes };
        folder.fill().map_err(|error| error.to_string())?;
        Ok(folder)
    }

    fn fill(&self) -> Result<(), root::Error> {
        for place in [SOURCES, PREFERENCES, lists::FOLDER] {
            for name in if_there(self.root.list(place))?.unwrap_or_default() {
                let path = Path::new(place).join(name);
                let is_file = self.root.stat(&path).is_ok_and(|meta| meta.kind == root::Kind::Regular);
                let is_managed = self.beneath("/etc/apt").any(|(written, _)| *written == path);
                if is_file && !is_managed && !path.ends_with("lock") {
                    self.root.write_link(self.path(&path), &path)?;
                }
            }
        }
        for (path, change) in self.beneath("/etc/apt") {
            let Some(bytes) = change.target.bytes() else { continue };
            self.root.write(self.path(path), &self.moved(bytes), READABLE)?;
        }
        let made = self.path(&Path::new(lists::FOLDER).join("partial/.made"));
        self.root.write(made, b"", READABLE).map(drop)
    }

    /// The changes of files beneath a folder.
    fn beneath(&self, folder: &str) -> impl Iterator<Item = (&'a Path, &'a Change)> {
        let paths = self.changes.iter().filter_map(|change| Some((change.path.path()?, change)));
        paths.filter(move |(path, _)| path.starts_with(folder))
    }

    /// A text in which keys that the plan writes are named as they are here.
    fn moved(&self, bytes: &[u8]) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(bytes) else { return bytes.to_vec() };
        let moved = self.beneath(KEYRINGS).fold(text.to_owned(), |text, (path, _)| {
            text.replace(&path.display().to_string(), &self.path(path).display().to_string())
        });
        moved.into_bytes()
    }

    fn path(&self, path: &Path) -> PathBuf {
        self.dir.path().join(path.strip_prefix("/").unwrap_or(path))
    }

    fn options(&self) -> Vec<String> {
        let here = |path: &str| self.path(Path::new(path)).display().to_string();
        vec![
            format!("Dir::Etc::SourceParts={}", here(SOURCES)),
            format!("Dir::Etc::PreferencesParts={}", here(PREFERENCES)),
            format!("Dir::State::Lists={}", here(lists::FOLDER)),
            // apt's caches are not used here.
            "Dir::Cache::pkgcache=".to_owned(),
            "Dir::Cache::srcpkgcache=".to_owned(),
            // The folder is closed to the user as whom apt fetches.
            "APT::Sandbox::User=root".to_owned(),
        ]
    }

    /// Simulates the installation of these packages, after apt has read the repositories that the plan adds.
    /// `problems`: gets those of repositories that could not be read.
    fn install(&self, packages: &[String], problems: &mut Vec<String>) -> Result<String, String> {
        // apt believes no repository without its key.
        for (path, change) in self.beneath("/etc/apt") {
            let Target::Put(Content::Fetched { url, check, .. }) = &change.target else { continue };
            let fetched = self.manager.fetch(url, check, path).and_then(|bytes| {
                self.root.write(self.path(path), &bytes, READABLE).map_err(|error| error.to_string())
            });
            problems.extend(fetched.err());
        }
        let options = self.options();
        let options: Vec<&str> = options.iter().flat_map(|option| ["-o", option.as_str()]).collect();
        let is_read = |effect: &&Effect| matches!(effect, Effect::AptUpdate { .. });
        for (source, change) in self.beneath("/") {
            let effect = change.effects.iter().find(is_read);
            let Some(effect) = effect.filter(|_| change.target.bytes().is_some()) else {
                continue;
            };
            if let Err(error) = self.manager.update(&self.path(source), &options) {
                problems.push(format!("{effect}: {error}"));
            }
        }
        let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
        self.manager.apt_get(&[&options[..], &SIMULATED, &["install"], &packages].concat(), &mut |_| {})
    }
}
