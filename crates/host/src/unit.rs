//! A unit of systemd as its files say it: the unit, its drop-ins, and what of both concerns the environment.
//!
//! Read from the files and not asked of systemd, which is not there beneath another Root, and which says what was so
//! at its last reload. systemd.unit(5) has the rules; tests/it/desired/concourse/real.rs holds this reader
//! against systemd's own.

mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use root::{Kind, Root};

use crate::{env_file, glob};
pub use text::{lines, words};

/// What `systemctl enable` links for a start of the whole machine.
pub const WANTS: &str = "/etc/systemd/system/multi-user.target.wants";

/// Folders of the system's units; an earlier one wins (systemd.unit(5)).
pub const FOLDERS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// The unit of a Concourse worker: the charm's, and that of Concourse's own documentation.
pub const CONCOURSE_WORKER: &str = "concourse-worker.service";

/// The longest unit that is read, in bytes: more than any unit has.
const LIMIT: usize = 256 << 10;

/// A service, without what a managed drop-in says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unit {
    pub path: PathBuf,
    /// The unit's drop-ins, in the order in which systemd reads them.
    pub drop_ins: Vec<PathBuf>,
    /// The program and its arguments, the last that was set.
    pub exec_start: Vec<String>,
    /// `Environment=`, in order; any environment file comes after it.
    pub environment: Vec<(String, String)>,
    pub environment_files: Vec<EnvironmentFile>,
    /// `UnsetEnvironment=`: taken away after everything else.
    pub unset: Vec<String>,
    /// Units with which this one stops and restarts: `Requires=`, `Requisite=`, `BindsTo=`, `PartOf=`.
    pub ends_with: Vec<String>,
    /// Files of the unit that could not be read, each as a sentence.
    pub unread: Vec<String>,
}

/// A line `EnvironmentFile=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentFile {
    /// The path as it is written, with wildcards and specifiers.
    pub path: PathBuf,
    /// Whether a `-` is in front: a missing file then does no harm.
    pub optional: bool,
    /// The unit or drop-in that names it.
    pub named_by: PathBuf,
}

impl Unit {
    /// Reads a unit beneath `root`, leaving out the `managed` drop-in; `None` where there is no such unit.
    ///
    /// # Errors
    /// Why the unit is there and cannot be read: it is masked, no text, too large.
    pub fn read(root: &Root, name: &str, managed: Option<&Path>) -> Result<Option<Self>, String> {
        let Some(path) = find(root, name) else { return Ok(None) };
        if is_masked(root, &path) {
            return Err(format!("{} is masked", root.shown(&path).display()));
        }
        let text = root.read_text(&path, LIMIT).map_err(|error| error.to_string())?;
        let mut unit = Self::parse(&path, &text);
        for drop_in in drop_ins(root, name) {
            if managed == Some(&drop_in) {
                continue;
            }
            match root.read_text(&drop_in, LIMIT) {
                Ok(text) => unit.add(&drop_in, &text),
                Err(error) => unit.unread.push(error.to_string()),
            }
            unit.drop_ins.push(drop_in);
        }
        Ok(Some(unit))
    }

    /// A unit that an engine may lack, and what could not be read of it, each as a sentence.
    #[must_use]
    pub fn of_engine(root: &Root, name: &str) -> (Option<Self>, Vec<String>) {
        match Self::read(root, name, None) {
            Ok(unit) => {
                let unread = unit.as_ref().map(|unit| unit.unread.clone()).unwrap_or_default();
                (unit, unread)
            }
            // A masked unit starts nothing, and counts as absent.
            Err(_) if find(root, name).is_some_and(|path| is_masked(root, &path)) => (None, Vec::new()),
            Err(reason) => (None, vec![reason]),
        }
    }

    /// A unit of this text alone, as it will stand at `path`.
    #[must_use]
    pub fn parse(path: &Path, text: &str) -> Self {
        let mut unit = Self { path: path.to_owned(), ..Self::default() };
        unit.add(path, text);
        unit
    }

    fn add(&mut self, file: &Path, text: &str) {
        for (section, key, value) in lines(text) {
            let reset = value.is_empty();
            match (section.as_str(), key.as_str()) {
                // An empty one takes nothing back: dependencies only ever grow.
                ("Unit", "Requires" | "Requisite" | "BindsTo" | "PartOf") => {
                    self.ends_with.extend(words(&value));
                }
                ("Service", "EnvironmentFile") if reset => self.environment_files.clear(),
                ("Service", "EnvironmentFile") => {
                    let path = value.strip_prefix('-');
                    self.environment_files.push(EnvironmentFile {
                        path: PathBuf::from(path.unwrap_or(&value)),
                        optional: path.is_some(),
                        named_by: file.to_owned(),
                    });
                }
                ("Service", "Environment") if reset => self.environment.clear(),
                ("Service", "Environment") => {
                    self.environment.extend(words(&value).into_iter().filter_map(|word| {
                        let (name, value) = word.split_once('=')?;
                        env_file::is_name(name).then(|| (name.to_owned(), value.replace("%%", "%")))
                    }));
                }
                ("Service", "UnsetEnvironment") if reset => self.unset.clear(),
                ("Service", "UnsetEnvironment") => self.unset.extend(words(&value)),
                // Flags of systemd's own stand in front of the program.
                ("Service", "ExecStart") => {
                    self.exec_start = words(value.trim_start_matches(['@', '-', ':', '+', '!', '|']));
                }
                _ => {}
            }
        }
    }
}

fn find(root: &Root, name: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|path| root.is_there(path))
}

/// Names of the folders of a unit's drop-ins beneath each of [`FOLDERS`]: its own, the most particular first, and the one of
/// all units of its kind.
pub fn drop_in_folders(name: &str) -> (Vec<String>, String) {
    let (stem, kind) = name.rsplit_once('.').unwrap_or((name, "service"));
    let dashes = stem.char_indices().rev().filter(|(at, c)| *c == '-' && at + 1 < stem.len());
    let shorter = dashes.filter_map(|(at, _)| Some(format!("{}.{kind}.d", stem.get(..=at)?)));
    (std::iter::once(format!("{name}.d")).chain(shorter).collect(), format!("{kind}.d"))
}

/// The drop-ins of a unit, sorted by name across all folders. Where several have one name, systemd reads the one in the
/// earlier of [`FOLDERS`], there the one in the more particular folder, and one for all units of a kind last.
fn drop_ins(root: &Root, name: &str) -> Vec<PathBuf> {
    let (own, of_kind) = drop_in_folders(name);
    let of_kind = [of_kind];
    let mut by_name = BTreeMap::new();
    for names in [own.as_slice(), &of_kind] {
        for (parent, name) in FOLDERS.iter().flat_map(|parent| names.iter().map(move |name| (parent, name))) {
            let folder = Path::new(parent).join(name);
            for file in root.list(&folder).unwrap_or_default() {
                let path = folder.join(&file);
                if path.extension() == Some("conf".as_ref()) {
                    by_name.entry(file).or_insert(path);
                }
            }
        }
    }
    by_name.into_values().filter(|path| !leads_to_null(root, path)).collect()
}

/// Whether a unit is a link to /dev/null, or empty: systemd then has none.
fn is_masked(root: &Root, path: &Path) -> bool {
    leads_to_null(root, path) || root.stat(path).is_ok_and(|meta| meta.kind == Kind::Regular && meta.len == 0)
}

/// Whether a unit's file is a link to /dev/null: such a drop-in hides all others of its name, and sets nothing.
fn leads_to_null(root: &Root, path: &Path) -> bool {
    root.read_link(path).is_ok_and(|target| target == Path::new("/dev/null"))
}

/// Whether a drop-in of this text changes what earlier environment files set.
#[must_use]
pub fn sets_environment_late(text: &str) -> bool {
    let late = ["EnvironmentFile", "UnsetEnvironment"];
    lines(text).iter().any(|(section, key, _)| section == "Service" && late.contains(&key.as_str()))
}

/// The files that a line `EnvironmentFile=` means, in the order in which systemd reads them; `None` where that takes
/// more than is known here.
pub fn named(root: &Root, unit: &str, path: &Path) -> Option<Vec<PathBuf>> {
    let name = unit.strip_suffix(".service").unwrap_or(unit);
    // The specifiers that the unit's name alone decides (systemd.unit(5), SPECIFIERS).
    let text = path.to_str()?.replace("%n", unit).replace("%N", name).replace("%p", name);
    if text.contains(['%', '[', '\\']) {
        return None;
    }
    let found = glob::paths(root, Path::new(&text), matches);
    // Where no file fits, the pattern itself is reported as missing.
    Some(if found.is_empty() { vec![PathBuf::from(text)] } else { found })
}

/// Whether a name fits a pattern: `*` and `?` do not match the dot that a name begins with (glob(7)).
fn matches(pattern: &str, name: &str) -> bool {
    (pattern.starts_with('.') || !name.starts_with('.')) && glob::fits(pattern, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leading_dot_is_in_no_wildcard() {
        for (pattern, name, is_so) in
            [("*.env", "a.env", true), ("*.env", ".a.env", false), (".*", ".a", true)]
        {
            assert_eq!(matches(pattern, name), is_so, "{pattern} {name}");
        }
    }
}
