//! What containerd's files set together, as its release reads them.

use std::path::PathBuf;

use host::version::Version;
use serde_json::{Map, Value};

use super::RUNTIME_TYPE;
use crate::containerd::Containerd;
use crate::{File, other_program};

/// CRI's sections by version of the file: version 2 gave plugins whole names, and version 3 split CRI in two plugins.
pub(super) const CRI_1: &str = "cri";
pub(super) const CRI_2: &str = "io.containerd.grpc.v1.cri";
pub(super) const CRI_3: &str = "io.containerd.cri.v1.runtime";

pub(super) struct Settings {
    /// The version of the main file. Absent: version 1, but for a file that says nothing.
    pub(super) main_version: Option<u64>,
    pub(super) main_is_empty: bool,
    /// The CRI section that is in effect, without defaults.
    pub(super) cri: Value,
    /// The CRI section that is to have the managed runtime.
    pub(super) section: &'static str,
    /// For containerd 1.x: which of its files has the section, or would have it.
    pub(super) host: usize,
    pub(super) cri_is_disabled: bool,
    /// For containerd 2: the CRI section of each file that is loaded after rocworker's drop-in.
    pub(super) later: Vec<(PathBuf, Value)>,
    /// Whether the managed keys go into these files. Where rocworker has a drop-in, it manages nothing in them.
    is_in_place: bool,
}

impl Settings {
    /// Reads containerd's files as this release does.
    pub(super) fn of(containerd: &Containerd, version: Version) -> Result<Self, String> {
        let main = containerd.main().ok_or("it has no main file")?;
        let mut versions = Vec::new();
        for file in &containerd.files {
            let parsed = file.parsed.as_ref().map_err(Clone::clone)?;
            if file.text == Ok(None) && file.path != main.path {
                // Started again it would not come back; `containerd config dump` hides it.
                return Err(format!(
                    "it imports {}, which is not there: containerd does not start so",
                    file.path.display()
                ));
            }
            file.check_imports()?;
            for section in [CRI_1, CRI_2, CRI_3] {
                file.table(&["plugins", section, "containerd", "runtimes"])?;
            }
            let shown = file.path.display();
            let most = most(version);
            versions.push(match parsed.get("version").map(|value| (value, value.as_u64())) {
                None | Some((_, Some(0))) => None,
                Some((_, Some(number))) if number <= most => Some(number),
                Some((_, Some(number))) => {
                    return Err(format!(
                        "{shown} has version {number}, and containerd {version} knows {most} at most"
                    ));
                }
                Some((value, None)) => {
                    return Err(format!("{shown} has version = {value}, which has to be a number"));
                }
            });
            if version.major > 1 && matches!(&file.text, Ok(Some(text)) if text.starts_with('\u{feff}')) {
                return Err(format!(
                    "{shown} begins with a byte order mark, which containerd 2 refuses: take it away"
                ));
            }
        }
        let main_version = versions.first().copied().flatten();
        let main_is_empty =
            main.parsed.as_ref().is_ok_and(|parsed| parsed.as_object().is_some_and(Map::is_empty));
        let mut later = Vec::new();
        let (section, host, cri) = if version.major == 1 {
            // The last version that a file names counts for all of them.
            let effective = versions.iter().rev().find_map(|version| *version);
            let is_first = effective.is_none_or(|version| version == 1) && !main_is_empty;
            let section = if is_first { CRI_1 } else { CRI_2 };
            let with_section = containerd.files.iter().rposition(|file| cri_of(file, section).is_some());
            let cri = with_section.and_then(|at| cri_of(containerd.files.get(at)?, section)).cloned();
            (section, with_section.unwrap_or(0), cri.unwrap_or_default())
        } else {
            one_version(containerd, version, &versions)?;
            let mut cri = Value::Object(Map::new());
            for (at, (file, file_version)) in containerd.files.iter().zip(&versions).enumerate() {
                for section in sections(*file_version, version) {
                    let Some(of_file) = cri_of(file, section) else { continue };
                    merge(&mut cri, of_file);
                    if at >= containerd.before_drop_in {
                        later.push((file.path.clone(), of_file.clone()));
                    }
                }
            }
            let names_runtimes = cri.pointer("/containerd/runtimes").is_some();
            (section(main_version, names_runtimes), 0, cri)
        };
        let files = containerd.files.iter().filter_map(|file| file.parsed.as_ref().ok());
        let disabled = files.filter_map(|parsed| parsed.get("disabled_plugins")?.as_array()).flatten();
        let mut disabled = disabled.filter_map(Value::as_str);
        let cri_is_disabled = disabled.any(|name| [CRI_1, CRI_2, CRI_3].contains(&name));
        let is_in_place = version.major == 1;
        Ok(Self { main_version, main_is_empty, cri, section, host, cri_is_disabled, later, is_in_place })
    }

    pub(super) fn runtimes(&self) -> Option<&Map<String, Value>> {
        self.cri.pointer("/containerd/runtimes")?.as_object()
    }

    /// What a runtime of this name runs, where that is not the wrapper. One that names no program runs the runtime's own:
    /// in a file that the managed keys are in, it may be a managed one without the program that a person removed. The
    /// receipt says whose it is.
    pub(super) fn runs_other(&self, name: &str, wrapper: &str) -> Option<&str> {
        let runtime = self.runtimes()?.get(name)?;
        let program = runtime.pointer("/options/BinaryName").and_then(Value::as_str);
        let may_be_managed = self.is_in_place && program.is_none_or(str::is_empty) && runs_runc(runtime);
        other_program(program, wrapper).filter(|_| !may_be_managed)
    }

    /// Whether runc's entry sets `SystemdCgroup`, or the default runtime's entry where there is no runc. An absent key
    /// is `false`, containerd's default.
    pub(super) fn systemd_cgroup(&self) -> bool {
        let of = |name: &str| self.runtimes()?.get(name)?.pointer("/options/SystemdCgroup")?.as_bool();
        let default = || self.cri.pointer("/containerd/default_runtime_name")?.as_str();
        let has_runc = self.runtimes().is_none_or(|runtimes| runtimes.contains_key("runc"));
        if has_runc { of("runc") } else { default().and_then(of) }.unwrap_or(false)
    }

    pub(super) fn cdi_dirs(&self) -> Option<&Vec<Value>> {
        self.cri.get("cdi_spec_dirs")?.as_array()
    }
}

/// Whether a runtime is of the managed runtime's kind, whichever program it runs.
fn runs_runc(runtime: &Value) -> bool {
    let kind = runtime.get("runtime_type").and_then(Value::as_str).unwrap_or_default();
    runtime.is_object() && ["", RUNTIME_TYPE].contains(&kind)
}

/// The highest version of the file that a release knows.
fn most(version: Version) -> u64 {
    match (version.major, version.minor) {
        (1, _) => 2,
        (2, ..=2) => 3,
        _ => 4,
    }
}

/// The section in which a drop-in of containerd 2 names a runtime. Files of version 2 have the old name, but only if
/// they name a runtime already: *observed* with 2.1.9, what they say of snapshotters is migrated only then
/// (`migrateConfig` of plugins/cri/images), so that the managed runtime under the old name would bring to life what had no
/// effect. Under the new name it is kept by the migration of the runtime plugin.
fn section(version: Option<u64>, names_runtimes: bool) -> &'static str {
    if version == Some(2) && names_runtimes { CRI_2 } else { CRI_3 }
}

/// The sections in which containerd 2 finds CRI's settings in a file.
fn sections(file: Option<u64>, version: Version) -> &'static [&'static str] {
    match file {
        Some(2) => &[CRI_2],
        Some(3..) => &[CRI_3],
        // *Observed* with 2.1.9: it raises the version and leaves the plugins as they are, so that what is under
        // CRI's old names has no effect. Later releases migrate the plugins of each file.
        _ if version.minor < 2 => &[],
        _ => &[CRI_1, CRI_2],
    }
}

/// Refuses files of several versions. Up to containerd 2.2 the files are merged first and then migrated from the
/// version that the last one names: files of several versions lose settings, and which ones would change with
/// rocworker's drop-in.
fn one_version(containerd: &Containerd, version: Version, versions: &[Option<u64>]) -> Result<(), String> {
    let main = versions.first().copied().flatten();
    if main == Some(1) {
        return Err("its main file has version 1, whose CRI settings containerd 2.1 does not read and which later releases \
                    import no newer file from: bring it up to date with `containerd config migrate`"
            .to_owned());
    }
    let all = containerd.files.iter().zip(versions);
    let other = all
        .skip(1)
        .find_map(|(file, version)| version.filter(|v| *v != main.unwrap_or(3)).map(|v| (file, v)));
    match other {
        Some((file, found)) if version.minor < 3 || found > main.unwrap_or(3) => Err(format!(
            "{} has version {found} and the file that imports it {}: containerd {version} loses settings of one of them; \
             give both the same (`containerd config migrate`)",
            file.path.display(),
            main.map_or("none".to_owned(), |version| version.to_string()),
        )),
        _ => Ok(()),
    }
}

fn cri_of<'a>(file: &'a File, section: &str) -> Option<&'a Value> {
    file.parsed.as_ref().ok()?.get("plugins")?.get(section)
}

/// Merges tables key by key and replaces everything else whole, as containerd 2 merges its files.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
