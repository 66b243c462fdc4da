//! What CRI-O needs: a runtime that is the wrapper, and the folder of rocworker's CDI spec. Both are in the managed drop-in.
//!
//! CRI-O takes each setting from the last file that has it, and a runtime whole: a later file's runtime of the managed
//! name replaces it, and rocworker's file removes nothing of another (`UpdateFromDropInFile` of its pkg/config).

use std::path::Path;

use config::Config;
use host::version::Version;
use reconcile::{Action, Desired, Effect, Stage};
use render::{self, Templates};
use root::Root;
use serde_json::{Map, Value, json};

use super::{Crio, ENGINE, NAME, UNIT};
use crate::wrapper_as_default::{NamedRuntime, of_runc, runs_wrapper};
use crate::{CommandLine, Engines, File, configured, drop_in, other_program, spec_folder, with_folder};
use host::unit::Unit;

/// The first release that reads CDI specs (`cdi_spec_dirs`).
const OLDEST: Version = Version { major: 1, minor: 23, patch: 0 };

/// What the managed runtime has in common with the runtime that other containers get: who watches a container, and what its pod
/// may ask for. Without `monitor_path` CRI-O looks for conmon on PATH, and does not start where there is none.
const INHERITED: [&str; 5] = [
    "monitor_path",
    "monitor_cgroup",
    "monitor_env",
    "allowed_annotations",
    "privileged_without_host_devices",
];

/// What rocworker configures of CRI-O. `wrapper`: where the wrapper is.
#[must_use]
pub fn actions(config: &Config, crio: &Crio, templates: &Templates, wrapper: &Path) -> Desired {
    let Crio { notes, unread, version, .. } = crio;
    let wrapper = wrapper.display().to_string();
    configured((&ENGINE, "CRI-O"), notes, unread, version, |version, desired| {
        want(config, crio, templates, (version, &wrapper), desired)
    })
}

fn want(
    config: &Config,
    crio: &Crio,
    templates: &Templates,
    (version, wrapper): (Version, &str),
    desired: &mut Desired,
) -> Result<(), String> {
    if version < OLDEST || version.major > 1 {
        return Err(format!("rocworker knows CRI-O 1.23 and later of version 1, and this is {version}"));
    }
    let runtime = &config.crio.runtime;
    let settings = Settings::of(&crio.files)?;
    let program = |it: &Value| it.get("runtime_path").and_then(Value::as_str).map(str::to_owned);
    let known = settings.runtimes.get(runtime).map(program);
    if let Some(other) = known.as_ref().and_then(|program| other_program(program.as_deref(), wrapper)) {
        return Err(format!(
            "it has a runtime {runtime} already, which runs {other}: name another one (crio.runtime), or take that one away"
        ));
    }
    if !crio.has_runc && crio.own_runc.is_none() && config.wrapper.runtime.is_none() {
        return Err(
            "there is no runc for the wrapper to run: install runc, or set wrapper.runtime".to_owned()
        );
    }
    let folder = spec_folder(config);
    let before = Settings::of(crio.files.get(..crio.before_drop_in).unwrap_or_default())?;
    let with_managed = |folder| with_folder(before.cdi_spec_dirs.as_ref(), folder);
    let context = json!({
        "runtime": runtime,
        "wrapper": wrapper,
        // What a file says replaces the whole list.
        "cdi_spec_dirs": folder.map_or_else(Vec::new, with_managed),
        "settings": settings.inherited(),
    });
    let program = ["crio", "runtime", "runtimes", runtime, "runtime_path"];
    let (text, _) = drop_in(templates, render::CRIO, &context, (&program, wrapper))?;
    let path = crio.drop_in();
    for file in crio.files.get(crio.before_drop_in..).unwrap_or_default() {
        let later = Settings::of(std::slice::from_ref(file))?;
        let reads = |dirs: &Vec<Value>| folder.is_none_or(|folder| dirs.iter().any(|it| it == folder));
        let what = match (later.runtimes.contains_key(runtime), &later.cdi_spec_dirs) {
            (true, _) => format!("what runtime {runtime} is"),
            (false, Some(dirs)) if !reads(dirs) => "cdi_spec_dirs".to_owned(),
            _ => continue,
        };
        let (later, path) = (file.path.display(), path.display());
        desired.problem(
            NAME,
            format!("{later} is loaded after {path} and says {what}, which wins: take that out there"),
        );
    }
    let reason = format!("CRI-O runs containers of runtime {runtime} through the wrapper");
    let action = Action::file(Stage::Expose, &path, text, &reason);
    // Containers outlive a restart: conmon keeps them. A reload would forget who monitors a runtime that does not say.
    let restart = Effect::Restart { unit: UNIT.to_owned(), drain: None };
    desired.push(if crio.unit { action.with(restart) } else { action });
    Ok(())
}

pub(super) fn has_wrapper_as_default(
    root: &Root,
    config: &Config,
    engines: &Engines,
) -> Result<Option<NamedRuntime>, String> {
    let Some(crio) = &engines.crio else { return Ok(None) };
    let settings = Settings::of(&crio.files)?;
    let unit = Unit::of_engine(root, UNIT).0;
    let line = unit.map(|unit| CommandLine::of(root, &unit)).unwrap_or_default();
    let runs = |name: &str, file: &Path| {
        // crio(8): name, path, and more
        let added = line.values(&["runtimes"]).into_iter().filter_map(|(_, runtime)| runtime);
        let mut paths = added.filter_map(|runtime| runtime.strip_prefix(name)?.strip_prefix(':'));
        let path = paths.next_back().map(|rest| rest.split(':').next().unwrap_or_default());
        let by_unit = path.map(|path| json!({ "runtime_path": path }));
        let entry = by_unit.as_ref().or_else(|| settings.runtimes.get(name));
        Some((file.to_owned(), runs_wrapper(root, (name, &config.crio.runtime), entry)?))
    };
    let of_unit = line.value(&["default-runtime"]).map(|name| (name, Path::new(UNIT)));
    let of_default = match of_unit.or(settings.default_runtime) {
        Some((name, file)) => runs(name, file),
        // Releases differ.
        None => ["crun", "runc"].into_iter().find_map(|name| runs(name, &crio.main)),
    };
    Ok(of_default.or_else(|| of_runc(root)))
}

/// What CRI-O's files set together.
#[derive(Default)]
struct Settings<'a> {
    runtimes: Map<String, Value>,
    /// The default runtime, and the file that names it.
    default_runtime: Option<(&'a str, &'a Path)>,
    cdi_spec_dirs: Option<Vec<Value>>,
}

impl<'a> Settings<'a> {
    fn of(files: &'a [File]) -> Result<Self, String> {
        let mut found = Self::default();
        for file in files {
            let Some(table) = file.table(&["crio", "runtime"])? else { continue };
            let runtimes = file.table(&["crio", "runtime", "runtimes"])?;
            found.runtimes.extend(runtimes.cloned().unwrap_or_default());
            let default = table.get("default_runtime").and_then(Value::as_str);
            found.default_runtime = default.map(|name| (name, file.path.as_path())).or(found.default_runtime);
            let dirs = table.get("cdi_spec_dirs").and_then(Value::as_array);
            found.cdi_spec_dirs = dirs.cloned().or(found.cdi_spec_dirs);
        }
        Ok(found)
    }

    /// The keys of [`INHERITED`] in runc's entry, else in the default runtime's, unless that one runs virtual machines.
    fn inherited(&self) -> Vec<Value> {
        let is_oci = |it: &&Value| it.get("runtime_type").is_none_or(|kind| kind == "" || kind == "oci");
        let default = || self.runtimes.get(self.default_runtime.map_or("crun", |(name, _)| name));
        let from = self.runtimes.get("runc").or_else(default).filter(is_oci);
        let of_key = |key| Some(json!({ "key": key, "value": from?.get(key)? }));
        INHERITED.into_iter().filter_map(of_key).collect()
    }
}
