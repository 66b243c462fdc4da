//! How the containerd that the worker starts comes to run the wrapper as its runc.
//!
//! containerd from 2.0 reads it from its configuration: the shims get a PATH that begins with a folder in which the
//! wrapper is `runc`. Older ones have no such key, and a configuration that a person wrote is not copied, which would
//! shadow what they change in it later: there containerd itself is started with that PATH, by a launcher, and its
//! shims inherit it.

use std::path::Path;

use edit::Format;
use host::version::Version;
use reconcile::{Action, Content, Kind, Stage};
use render::{self, Templates};
use root::Attributes;
use serde_json::{Value, json};

use super::super::{CONFIG_VARIABLE, UNIT, Worker};
use super::{CONTAINERD_CONFIG, LAUNCHER, SHIM_FOLDER};

/// The first containerd whose shims can be given an environment.
const WITH_SHIM_ENVIRONMENT: Version = Version { major: 2, minor: 0, patch: 0 };
/// The first whose configuration is of version 4.
const WITH_VERSION_4: Version = Version { major: 2, minor: 3, patch: 0 };
/// The first Concourse that runs containerd by default (concourse/concourse#9372); before, guardian.
const WITH_CONTAINERD: Version = Version { major: 8, minor: 0, patch: 0 };

/// What Concourse gives its containerd (worker/workercmd/containerd.go) in 7.14 to 8.1.
const DEFAULT_3: &str = include_str!("../../../../../templates/concourse/default-3.toml");
/// What Concourse gives its containerd from 8.2: what concourse/concourse#9562 says of it, snapshotters, CRI and
/// sandboxes. Without the snapshotters overlayfs and native: containerd 2.1 does not work without any, and a plugin
/// that is loaded does no harm.
const DEFAULT_4: &str = include_str!("../../../../../templates/concourse/default-4.toml");

/// Note for a worker whose configuration is made from [`DEFAULT_4`].
const INCOMPLETE: &str = "the worker has not yet written its own containerd.toml, so that rocworker's is \
    made of what is known of Concourse 8.2's: 13 of the 18 plugins that it disables are disabled";

const MANAGER: &str = "io.containerd.shim.v1.manager";

/// A file, and the variable of the worker's that names it.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) action: Action,
    pub(super) variable: (&'static str, String),
    /// What a person should know of it.
    pub(super) note: Option<&'static str>,
}

/// Why there is no way, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hindrance {
    /// The worker's containers cannot be given GPUs, for this reason.
    Known(String),
    /// How the worker runs, or what should be written for it, is unknown: no reason to revert what works.
    Unknown(String),
}

/// The way for this worker; `None` where its own configuration of containerd names the managed folder already.
///
/// # Errors
/// Why the worker's containers cannot be given GPUs, or why that is unknown.
pub(super) fn way(templates: &Templates, worker: &Worker) -> Result<Option<Way>, Hindrance> {
    runs_containerd(worker)?;
    if let Some((path, text)) = &worker.own_config {
        let text = text.as_deref().map_err(|problem| {
            Hindrance::Unknown(format!("{problem}: the configuration of the worker's containerd is unknown"))
        })?;
        // A configuration that a person gave the worker stays as it is.
        // A text that containerd cannot read either has no PATH.
        return match shim_path(&Format::Toml.read(text).unwrap_or_default()) {
            Some(shims)
                if shims
                    .split(':')
                    .next()
                    .is_some_and(|first| Path::new(first) == Path::new(SHIM_FOLDER)) =>
            {
                Ok(None)
            }
            // This PATH comes after what the shims inherit, and wins over the launcher's.
            Some(shims) => Err(Hindrance::Known(format!(
                "{} gives containerd's shims PATH={shims}, on which runc is not rocworker's wrapper: begin it with {SHIM_FOLDER}:",
                path.display()
            ))),
            None => launcher(templates, worker).map(Some),
        };
    }
    let is_2 = match &worker.containerd.version {
        Ok(version) => *version >= WITH_SHIM_ENVIRONMENT,
        // Another way only because the version is unknown this time would restart the worker twice.
        Err(reason) if worker.was_given_config => {
            return Err(Hindrance::Unknown(format!(
                "the version of the worker's containerd is not known now ({reason}), and it was 2.0 or later when \
                 {CONFIG_VARIABLE} was set: that stays"
            )));
        }
        Err(_) => false,
    };
    let shims = if is_2 { shims(templates, worker).map_err(Hindrance::Unknown)? } else { None };
    shims.map_or_else(|| launcher(templates, worker), Ok).map(Some)
}

/// Whether containerd is what runs the worker's containers; a worker with another runtime does not start with any
/// variable for containerd.
fn runs_containerd(worker: &Worker) -> Result<(), Hindrance> {
    let remedy = worker.settings_file.as_ref().map_or_else(
        || {
            format!(
                "run `systemctl edit {UNIT}`, and add [Service] and Environment=CONCOURSE_RUNTIME=containerd"
            )
        },
        |file| format!("set CONCOURSE_RUNTIME=containerd in {}", file.display()),
    );
    let nothing = "so that its containers get no GPU and it no tag of one";
    let variable = || worker.environment.get("CONCOURSE_RUNTIME").map(String::as_str);
    let runtime = worker.options.value(&["runtime"]).or_else(variable);
    match (runtime.filter(|name| !name.is_empty()), &worker.version) {
        (Some("containerd"), _) => Ok(()),
        (Some(other), _) => Err(Hindrance::Known(format!(
            "the worker runs {other}, which the wrapper cannot serve, {nothing}: {remedy}"
        ))),
        (None, Ok(version)) if *version >= WITH_CONTAINERD => Ok(()),
        // An environment file that is not read here may name the runtime.
        (None, Ok(_)) if !worker.unfollowed.is_empty() => Err(Hindrance::Unknown(format!(
            "{}: whether the worker runs containerd or guardian is not known, and nothing is changed: {remedy}",
            worker.unfollowed.join("; ")
        ))),
        (None, Ok(version)) => Err(Hindrance::Known(format!(
            "the worker runs guardian, which Concourse {version} does by default and which the wrapper cannot \
             serve, {nothing}: {remedy}"
        ))),
        (None, Err(reason)) => Err(Hindrance::Unknown(format!(
            "whether the worker runs containerd or guardian is not known ({reason}; no file of Concourse's names its \
             version), and nothing is changed: {remedy}"
        ))),
    }
}

/// The PATH that a configuration gives the shims.
fn shim_path(config: &Value) -> Option<&str> {
    let env = config.get("plugins")?.get(MANAGER)?.get("env")?.as_array()?;
    env.iter().filter_map(|word| word.as_str()?.strip_prefix("PATH=")).next_back()
}

/// What the worker would give its containerd, and the PATH; `None` where that has a section of this plugin already.
fn shims(templates: &Templates, worker: &Worker) -> Result<Option<Way>, String> {
    let is_4 = worker.containerd.version.as_ref().is_ok_and(|version| *version >= WITH_VERSION_4);
    let written = worker.written_config.as_deref().filter(|text| {
        let version = Format::Toml.read(text).ok().and_then(|config| config.get("version")?.as_u64());
        // What an earlier release wrote is out of date; a later one may have gone on.
        if is_4 { version >= Some(4) } else { version == Some(3) }
    });
    let default = written.unwrap_or(if is_4 { DEFAULT_4 } else { DEFAULT_3 });
    let meant = Format::Toml.read(default);
    let meant = meant.map_err(|fault| format!("the worker's own containerd.toml is not TOML: {fault}"))?;
    if meant.get("plugins").is_some_and(|plugins| plugins.get(MANAGER).is_some()) {
        return Ok(None);
    }
    let path = format!("{SHIM_FOLDER}:{}", worker.path());
    let context = json!({ "default": default.trim_matches('\n'), "path": format!("PATH={path}") });
    let text = templates.render(render::CONCOURSE_CONTAINERD, context).map_err(|error| error.to_string())?;
    check(templates, &text, &meant, &path)?;
    // A copy of the worker's containerd.toml, which may be for root alone; only root's containerd reads it.
    let content = file(text, 0o600);
    let reason = "Concourse's containerd gives its shims the wrapper as runc";
    Ok(Some(Way {
        action: Action::new(Stage::Expose, CONTAINERD_CONFIG, content, reason),
        variable: (CONFIG_VARIABLE, CONTAINERD_CONFIG.to_owned()),
        note: Some(INCOMPLETE).filter(|_| is_4 && written.is_none()),
    }))
}

/// Holds what came out of the template against what it was made of.
fn check(templates: &Templates, text: &str, meant: &Value, path: &str) -> Result<(), String> {
    let wrong = |problem: String| format!("{}: {problem}", templates.place(render::CONCOURSE_CONTAINERD));
    let made = Format::Toml.read(text).map_err(|fault| wrong(format!("it gives no TOML: {fault}")))?;
    if shim_path(&made) != Some(path) {
        return Err(wrong("it does not give the shims the PATH that it was asked for".to_owned()));
    }
    let is_lost = |(key, value): &(&String, &Value)| *key != "plugins" && made.get(key) != Some(value);
    let lost = meant.as_object().into_iter().flatten().find(is_lost);
    lost.map_or(Ok(()), |(key, _)| Err(wrong(format!("it loses {key} of Concourse's own configuration"))))
}

fn launcher(templates: &Templates, worker: &Worker) -> Result<Way, Hindrance> {
    if let Some(program) = worker.options.value(&["containerd-bin"]) {
        return Err(Hindrance::Known(format!(
            "{} says --containerd-bin {program}, which wins over CONCOURSE_CONTAINERD_BIN, so that its containers get \
             no GPU: set that variable in its place",
            worker.unit.display()
        )));
    }
    let Some(program) = &worker.containerd.program else {
        let reason = worker.containerd.version.as_ref().err().map_or("", String::as_str);
        return Err(Hindrance::Unknown(format!(
            "the worker's containerd is not found ({reason}): nothing is changed until it is there"
        )));
    };
    let containerd = program.to_str().filter(|text| !text.contains('\''));
    let containerd = containerd.ok_or_else(|| {
        Hindrance::Known("a path with an apostrophe cannot stand in the launcher".to_owned())
    })?;
    let context = json!({ "shim": format!("'{SHIM_FOLDER}'"), "containerd": format!("'{containerd}'") });
    let text = templates
        .render(render::CONCOURSE_LAUNCHER, context)
        .map_err(|error| Hindrance::Unknown(error.to_string()))?;
    let variable = ("CONCOURSE_CONTAINERD_BIN", LAUNCHER.to_owned());
    let reason = "starts Concourse's containerd with the wrapper as runc";
    Ok(Way { action: Action::new(Stage::Expose, LAUNCHER, file(text, 0o755), reason), variable, note: None })
}

fn file(text: String, mode: u32) -> Kind {
    let attributes = Attributes { mode, owner: None };
    Kind::Owned(Content::File { bytes: text.into_bytes(), attributes })
}
