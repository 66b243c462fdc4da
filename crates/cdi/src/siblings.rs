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

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::errno::Errno;
use printable::printable;
use root::Root;
use serde::Deserialize as _;
use yaml_serde::Value;

use super::LIMIT;
use super::spec::KIND;

/// Folders in which engines look for CDI specs by default; the last one wins (CDI spec, "CDI JSON Specification",
/// default folders).
pub const DEFAULT_FOLDERS: [&str; 2] = ["/etc/cdi", "/var/run/cdi"];

/// The folders in which engines look, with the rank of each: a higher rank wins. /var/run is a link to /run on most
/// machines.
const FOLDERS: [(&str, u8); 3] = [(DEFAULT_FOLDERS[0], 0), (DEFAULT_FOLDERS[1], 1), ("/run/cdi", 1)];

/// Rank of every other folder: rocworker adds it behind the folders that an engine already reads.
const LAST: u8 = 2;

/// Whether a spec at this path is loaded by engines that are configured as they come.
#[must_use]
pub fn is_read_by_engines(path: &Path) -> bool {
    path.parent().is_some_and(|folder| FOLDERS.iter().any(|(known, _)| Path::new(known) == folder))
}

/// The specs that engines read beside the one at a path.
#[derive(Debug, Default)]
pub struct Siblings {
    path: PathBuf,
    /// The device names that engines read at the path itself now.
    pub present: BTreeSet<String>,
    /// Whether rocworker wrote what is at the path.
    is_managed: bool,
    others: Vec<Sibling>,
}

#[derive(Debug)]
struct Sibling {
    /// The spec's path, with the Root in front, as a person at a shell names it.
    path: PathBuf,
    /// How engines rank the spec's folder against that of rocworker's own spec.
    folder: Ordering,
    /// The spec's device names, or why they are not known.
    names: Result<BTreeSet<String>, String>,
}

/// Another spec that names devices which rocworker's spec names too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The other spec's path, with the Root in front, as a person at a shell names it.
    pub file: PathBuf,
    pub names: Vec<String>,
    pub meaning: Meaning,
}

/// What engines make of a name that two specs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Engines find no device by the name. `is_new`: they find the other spec's until rocworker's is written.
    Lost { is_new: bool },
    /// Engines take the other spec's device.
    Hidden,
    /// Engines take rocworker's device.
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
        Self { path: root.shown(path), present, is_managed: goes(path), others }
    }

    /// The specs that have some of these names too.
    #[must_use]
    pub fn conflicts<'n>(&self, names: impl Iterator<Item = &'n str> + Clone) -> Vec<Conflict> {
        let of = |other: &Sibling| {
            let other_names = other.names.as_ref().ok()?;
            let common: Vec<&str> = names.clone().filter(|name| other_names.contains(*name)).collect();
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

    /// The devices that would disappear if a spec with these names replaced the one at the path. `None`: no device would,
    /// or rocworker wrote the spec that is there.
    #[must_use]
    pub fn replaced<'n>(&self, names: impl Iterator<Item = &'n str>) -> Option<String> {
        let names: BTreeSet<&str> = names.collect();
        let ending = self.present.iter().filter(|name| !self.is_managed && !names.contains(name.as_str()));
        let ending: Vec<String> = ending.map(|name| format!("{KIND}={name}")).collect();
        (!ending.is_empty()).then(|| {
            printable(&format!(
                "{} is replaced, and rocworker's spec lacks these devices of it: {}. To keep them, move that spec to \
                 another name, without the names of rocworker's devices",
                self.path.display(),
                ending.join(", ")
            ))
        })
    }

    /// A sentence for each file or folder whose device names cannot be read.
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

    /// Whether writing the spec would cause the conflict.
    #[must_use]
    pub fn ends_what_works(&self) -> bool {
        self.meaning == Meaning::Lost { is_new: true }
    }

    /// What engines make of the conflict, in a sentence.
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

    /// What a person does to end the conflict.
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
    match root.read(file, LIMIT) {
        Ok(bytes) => names_in(&text_of(&bytes)?).map(Ok),
        // A link to nothing. A folder, which no engine reads.
        Err(root::Error::Io { errno: Errno::ENOENT | Errno::EISDIR, .. } | root::Error::NotAFile { .. }) => {
            None
        }
        Err(error) => Some(Err(error.to_string())),
    }
}

/// The text of YAML by its byte order mark (YAML 1.2.2, 5.2 "Character Encodings").
fn text_of(bytes: &[u8]) -> Option<String> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, _) = bytes.as_chunks::<2>();
        String::from_utf16(&pairs.iter().map(|pair| unit(*pair)).collect::<Vec<_>>()).ok()
    };
    match bytes {
        [0xff, 0xfe, text @ ..] => utf16(text, u16::from_le_bytes),
        [0xfe, 0xff, text @ ..] => utf16(text, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, text @ ..] | text => String::from_utf8(text.to_vec()).ok(),
    }
}

/// The device names in a spec's text. Engines read the first document of YAML, and JSON is YAML. A name counts also
/// where engines may leave the spec out: an extra name costs a rename, and a spec that they read must go on working.
fn names_in(text: &str) -> Option<BTreeSet<String>> {
    let first = yaml_serde::Deserializer::from_str(text).next()?;
    let mut spec = Value::deserialize(first).ok()?;
    spec.apply_merge().ok()?;
    if !values(&spec, "kind").flat_map(spelt).any(|kind| kind == KIND) {
        return None;
    }
    let devices: Vec<&Value> = values(&spec, "devices").filter_map(Value::as_sequence).flatten().collect();
    let names: Vec<Vec<String>> =
        devices.iter().map(|device| values(device, "name").flat_map(spelt).collect()).collect();
    // Engines leave out a whole spec that has a key which CDI does not know, or a name twice.
    let mut seen = BTreeSet::new();
    let is_twice = names.iter().any(|names| matches!(names.as_slice(), [name] if !seen.insert(name)));
    if is_twice
        || !has_only(&spec, &SPEC_KEYS)
        || devices.iter().any(|device| !has_only(device, &DEVICE_KEYS))
    {
        return None;
    }
    Some(names.into_iter().flatten().collect())
}

const SPEC_KEYS: [&str; 5] = ["cdiVersion", "kind", "annotations", "devices", "containerEdits"];
const DEVICE_KEYS: [&str; 3] = ["name", "annotations", "containerEdits"];

fn has_only(value: &Value, known: &[&str]) -> bool {
    let is_known = |key: &Value| key.as_str().is_none_or(|_| known.iter().any(|known| is_key(key, known)));
    value.as_mapping().is_none_or(|entries| entries.keys().all(is_known))
}

/// The values of a key.
fn values<'v>(value: &'v Value, key: &'static str) -> impl Iterator<Item = &'v Value> {
    value.as_mapping().into_iter().flatten().filter(move |(it, _)| is_key(it, key)).map(|(_, value)| value)
}

/// Go takes a key in any case (encoding/json, `Unmarshal`), of two letters beyond ASCII too (`foldName`).
fn is_key(value: &Value, key: &str) -> bool {
    let fold = |c: char| match c {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        c => c.to_ascii_lowercase(),
    };
    spelt(value).iter().any(|it| it.chars().map(fold).eq(key.chars().map(fold)))
}

/// The texts that engines may read here: a number counts as its decimal text, and YAML 1.1 spells one in many ways
/// (yaml.org/type/int.html). Whether it was quoted is not kept, nor whether it has YAML's tag `!!binary`.
fn spelt(name: &Value) -> Vec<String> {
    let text = match name {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        // `! 0`: engines take no notice of a tag that they do not know.
        Value::Tagged(tagged) => return spelt(&tagged.value),
        _ => return Vec::new(),
    };
    let number = number(&text).filter(|number| *number != text);
    let binary = binary(&text);
    std::iter::once(text).chain(number).chain(binary).collect()
}

/// The text behind `!!binary` (yaml.org/type/binary.html). A name that happens to be one as well costs a rename.
fn binary(text: &str) -> Option<String> {
    let bytes = STANDARD.decode(text.replace(['\r', '\n'], "")).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

/// The decimal text of a whole number as YAML 1.1 spells it.
fn number(text: &str) -> Option<String> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let digits = text.strip_prefix('+').unwrap_or(&text);
    let of = |prefix: &str, radix| {
        digits.strip_prefix(prefix).and_then(|digits| u64::from_str_radix(digits, radix).ok())
    };
    let octal = || of("0", 8).filter(|_| !digits.contains('o'));
    let whole = of("0x", 16).or_else(|| of("0o", 8)).or_else(|| of("0b", 2)).or_else(octal);
    let whole = whole.or_else(|| digits.parse().ok());
    let float = || digits.parse::<f64>().ok().filter(|it| it.fract() == 0.0 && it.abs() < 1e15);
    whole.map(|it| it.to_string()).or_else(|| float().map(|it| format!("{:.0}", it.abs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_engines_may_resolve_counts() {
        let yaml = |name: &str, edits: &str| {
            format!(
                "cdiVersion: 0.5.0\nkind: amd.com/gpu\ndevices:\n- name: {name}\n  containerEdits: {{{edits}}}\n"
            )
        };
        let utf16 = |text: &str, mark: u16, of: fn(u16) -> [u8; 2]| -> Vec<u8> {
            std::iter::once(mark).chain(text.encode_utf16()).flat_map(of).collect()
        };
        let plain = yaml("\"0\"", "env: [A=b]");
        for bytes in [
            plain.clone().into_bytes(),
            format!("\u{feff}{plain}").into_bytes(),
            utf16(&plain, 0xfeff, u16::to_le_bytes),
            utf16(&plain, 0xfeff, u16::to_be_bytes),
            yaml("00", "env: [A=b]").into_bytes(),
            yaml("0_0", "env: [A=b]").into_bytes(),
            yaml("0x0", "env: [A=b]").into_bytes(),
            yaml("0.0", "env: [A=b]").into_bytes(),
            yaml("-0", "env: [A=b]").into_bytes(),
            yaml("! 0", "env: [A=b]").into_bytes(),
            yaml("!mine \"0\"", "env: [A=b]").into_bytes(),
            yaml("!!str 0", "env: [A=b]").into_bytes(),
            yaml("!!binary MA==", "env: [A=b]").into_bytes(),
            plain.replace("amd.com/gpu", "!!binary YW1kLmNvbS9ncHU=").into_bytes(),
            plain.replace("kind", "\u{212a}ind").replace("devices", "device\u{17f}").into_bytes(),
            plain.replace("kind", "Kind").replace("name", "NAME").replace("devices", "Devices").into_bytes(),
            yaml("0", "hooks: [{hookName: prestart, path: /bin/true, timeout: 0}]").into_bytes(),
            yaml("0", "hooks: [{hookName: prestart, path: bin/true}]").into_bytes(),
            yaml("0", "mounts: [{hostPath: a, containerPath: b}]").into_bytes(),
            b"kind: amd.com/gpu\ndevices:\n- &e {name: a, containerEdits: {env: [A=b]}}\n- {<<: *e, name: 0}\n".to_vec(),
            b"kind: amd.com/gpu\ndevices: [{<<: {name: 0, containerEdits: {env: [A=b]}}}]\n".to_vec(),
        ] {
            let names = text_of(&bytes).and_then(|text| names_in(&text)).unwrap_or_default();
            assert!(names.contains("0"), "{}: {names:?}", String::from_utf8_lossy(&bytes));
        }
        for text in [
            plain.replace("amd.com/gpu", "amd.com/npu"),
            plain.replace("kind", "mine: 1\nkind"),
            format!("{plain}- name: \"0\"\n"),
            "kind: amd.com/gpu\ndevices: [{".to_owned(),
        ] {
            assert_eq!(names_in(&text), None, "{text}");
        }
    }
}
