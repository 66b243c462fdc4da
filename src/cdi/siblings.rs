//! Other specs of AMD's kind, and the device names that they share with rocworker's.
//!
//! A conflict is one of a name, not of a kind: names that no other spec has work beside any spec. Of two specs in one
//! folder that have a name, engines take neither. Of two folders the later one wins (`Cache.refresh` in
//! tags.cncf.io/container-device-interface/pkg/cdi).

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use allocation::cdi::Spec;
use root::Root;
use serde::Deserialize as _;
use serde_json::Value;

use super::LIMIT;
use super::spec::KIND;
use crate::printable::printable;

/// Where engines look by default, the folder that wins last (CDI spec, "CDI JSON Specification", default folders).
pub const DEFAULT_FOLDERS: [&str; 2] = ["/etc/cdi", "/var/run/cdi"];

/// Each folder of engines with its rank. /var/run is a link to /run on most machines.
const FOLDERS: [(&str, u8); 3] = [(DEFAULT_FOLDERS[0], 0), (DEFAULT_FOLDERS[1], 1), ("/run/cdi", 1)];

/// Of any other folder: rocworker puts it behind those that an engine has.
const LAST: u8 = 2;

/// Whether a spec at this path is loaded by engines that are configured as they come.
#[must_use]
pub fn is_read_by_engines(path: &Path) -> bool {
    path.parent().is_some_and(|folder| FOLDERS.iter().any(|(known, _)| Path::new(known) == folder))
}

/// The specs that engines read beside the one at a path.
#[derive(Debug, Default)]
pub struct Siblings {
    /// The device names that engines read at the path itself now.
    pub present: BTreeSet<String>,
    others: Vec<Sibling>,
}

#[derive(Debug)]
struct Sibling {
    /// As a person at a shell names it.
    path: PathBuf,
    /// Whether engines read its folder before the path's own, as that, or after it.
    folder: Ordering,
    /// Its device names, or why they are not known.
    names: Result<BTreeSet<String>, String>,
}

/// Another spec that has names of rocworker's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// As a person at a shell names it.
    pub file: PathBuf,
    pub names: Vec<String>,
    pub meaning: Meaning,
}

/// What engines make of a name that two specs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// They find no device by it. `is_new`: they find the other spec's until rocworker's is written.
    Lost { is_new: bool },
    /// They take the other spec's device.
    Hidden,
    /// They take rocworker's device.
    Hides,
}

impl Siblings {
    /// Reads what is beside a path and in the folders of engines. `goes`: a spec that is removed before long.
    #[must_use]
    pub fn read(root: &Root, path: &Path, goes: impl Fn(&Path) -> bool) -> Self {
        let real = |folder: &Path| root.without_links(folder).unwrap_or_else(|| folder.to_owned());
        let rank = |folder: &Path| {
            let known = FOLDERS.iter().find(|(known, _)| real(Path::new(known)) == real(folder));
            known.map_or(LAST, |(_, rank)| *rank)
        };
        let own = path.parent().unwrap_or(path);
        let mut seen = BTreeSet::new();
        let folders = std::iter::once(own).chain(FOLDERS.iter().map(|(folder, _)| Path::new(folder)));
        let mut others = Vec::new();
        for folder in folders.filter(|folder| seen.insert(real(folder))) {
            let order = rank(folder).cmp(&rank(own));
            let names = match root.list(folder) {
                Ok(names) => names,
                Err(error) if error.is_not_found() => continue,
                Err(error) => {
                    let names = Err(error.to_string());
                    others.push(Sibling { path: root.shown(folder), folder: order, names });
                    continue;
                }
            };
            let files = names.into_iter().filter(|name| is_spec(name)).map(|name| folder.join(name));
            for file in files.filter(|file| file != path && !goes(file)) {
                let names = names_at(root, &file);
                others.extend(names.map(|names| Sibling { path: root.shown(&file), folder: order, names }));
            }
        }
        let present = names_at(root, path).and_then(Result::ok).unwrap_or_default();
        Self { present, others }
    }

    /// The specs that have some of these names too.
    #[must_use]
    pub fn conflicts<'n>(&self, names: impl Iterator<Item = &'n str> + Clone) -> Vec<Conflict> {
        let of = |other: &Sibling| {
            let theirs = other.names.as_ref().ok()?;
            let common: Vec<&str> = names.clone().filter(|name| theirs.contains(*name)).collect();
            let is_new = common.iter().any(|name| !self.present.contains(*name));
            let meaning = match other.folder {
                Ordering::Equal => Meaning::Lost { is_new },
                Ordering::Greater => Meaning::Hidden,
                Ordering::Less => Meaning::Hides,
            };
            let names: Vec<String> = common.into_iter().map(str::to_owned).collect();
            (!names.is_empty()).then(|| Conflict { file: other.path.clone(), names, meaning })
        };
        self.others.iter().filter_map(of).collect()
    }

    /// Of files and folders whose names cannot be read, a sentence each.
    pub fn unknown(&self) -> impl Iterator<Item = String> {
        self.others.iter().filter_map(|other| {
            let error = other.names.as_ref().err()?;
            Some(printable(&format!(
                "whether another CDI spec has names of rocworker's is not known: {error}"
            )))
        })
    }
}

/// Why a spec is not written, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub why: String,
    pub remedy: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. To go on, {}", self.why, self.remedy)
    }
}

/// Whether a spec with these conflicts is not written: engines find devices by names that they would then resolve no more.
#[must_use]
pub fn refusal(conflicts: &[Conflict]) -> Option<Refusal> {
    let ending: Vec<&Conflict> = conflicts.iter().filter(|it| it.ends_what_works()).collect();
    let each = |of: fn(&Conflict) -> String| ending.iter().map(|it| of(it)).collect::<Vec<_>>().join("; ");
    (!ending.is_empty()).then(|| Refusal {
        why: format!("no CDI spec is written, so that these devices go on working: {}", each(Conflict::text)),
        remedy: each(Conflict::remedy),
    })
}

impl Conflict {
    /// Whether engines give another device than rocworker's by a name, or none.
    #[must_use]
    pub fn breaks(&self) -> bool {
        self.meaning != Meaning::Hides
    }

    /// Whether writing the spec would make it.
    #[must_use]
    pub fn ends_what_works(&self) -> bool {
        self.meaning == Meaning::Lost { is_new: true }
    }

    /// What engines make of it, in a sentence.
    #[must_use]
    pub fn text(&self) -> String {
        const SHOWN: usize = 4;
        let (file, count) = (self.file.display(), self.names.len());
        let shown: Vec<String> = self.names.iter().take(SHOWN).map(|name| format!("{KIND}={name}")).collect();
        let more = if count > SHOWN { format!(" and {} more", count - SHOWN) } else { String::new() };
        let names = format!("{}{more}", shown.join(", "));
        printable(&match self.meaning {
            Meaning::Lost { .. } => {
                format!(
                    "{file} has {names} too, and engines resolve no name that two specs of one folder have"
                )
            }
            Meaning::Hidden => {
                format!("{file} has {names} too, and engines take its devices, since its folder wins")
            }
            Meaning::Hides => format!(
                "{file} has {names} too, and engines take rocworker's devices, since the folder in cdi.path wins"
            ),
        })
    }

    /// What ends it.
    #[must_use]
    pub fn remedy(&self) -> String {
        printable(&format!("remove {0}, or rename these devices in it", self.file.display()))
    }
}

/// Engines load these two endings and no other.
fn is_spec(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.ends_with(b".json") || name.ends_with(b".yaml")
}

/// The names of a spec, or why they are not known; `None` for what no engine loads as a spec of AMD's GPUs.
fn names_at(root: &Root, file: &Path) -> Option<Result<BTreeSet<String>, String>> {
    match root.read_text(file, LIMIT) {
        Ok(text) => names_in(&text).map(Ok),
        // A link to nothing, a folder.
        Err(error) if error.is_not_found() => None,
        Err(root::Error::NotAFile { .. } | root::Error::NotText { .. }) => None,
        Err(error) => Some(Err(error.to_string())),
    }
}

/// Of YAML, engines read the first document, and take a number for a text (sigs.k8s.io/yaml). JSON is YAML.
fn names_in(text: &str) -> Option<BTreeSet<String>> {
    let first = yaml_serde::Deserializer::from_str(text).next()?;
    let spec = Value::deserialize(first).ok()?;
    if spec.get("kind")?.as_str()? != KIND {
        return None;
    }
    // Engines leave out a spec that breaks the rules. Of a version that is too low for its content, older ones do not
    // (podman 4.3), and what this parser alone refuses counts.
    let is_left_out = |spec: Spec<'_>| spec.faults().iter().any(|fault| fault.at != "cdiVersion");
    if Spec::parse(&spec.to_string()).is_ok_and(is_left_out) {
        return None;
    }
    let name = |device: &Value| match device.get("name")? {
        Value::String(name) => Some(name.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    Some(spec.get("devices")?.as_array()?.iter().filter_map(name).collect())
}
