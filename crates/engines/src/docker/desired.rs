//! What docker's configuration needs: the managed runtime, and CDI where docker supports it and has it not on yet. Its default
//! runtime is never changed.

use std::path::Path;

use config::{Config, Sharing};
use edit::{Edit, Format, Key, Set};
use host::version::Version;
use reconcile::{Action, Ask, Desired, Effect, Restarts, Stage};
use serde_json::{Map, Value, json};

use super::{Docker, Installed, NAME, UNIT};
use crate::{folder_beside, other_program, spec_folder};

const WAITS: &str = "docker takes CDI in when it starts, and stops its containers when it ends (live-restore is not set): \
    it is not restarted unless restart is now; systemctl restart docker does it";

const NEVER_IDLE: &str = "wrapper.idle-grace-s does not end docker's containers, since their first process may be the \
    work: each keeps its GPUs until it ends";

/// The first release with `features.cdi` (moby#47087).
pub(crate) const CDI: Version = Version { major: 25, minor: 0, patch: 0 };
/// The first release in which CDI is on unless it is switched off (moby#49963).
const CDI_BY_DEFAULT: Version = Version { major: 28, minor: 2, patch: 0 };

/// What docker's configuration needs, and what a person should know. `wrapper`: the program that runs containers.
#[must_use]
pub fn actions(config: &Config, docker: &Docker, wrapper: &Path) -> Desired {
    let mut desired = Desired::default();
    if docker.is_snap {
        desired.note(
            NAME,
            "docker is there as a snap, whose files are snapd's: it is left alone, and reads /etc/cdi only as far as \
             its confinement lets it",
        );
    }
    let Some(installed) = &docker.installed else { return desired };
    if let Err(problem) = want(config, installed, wrapper, &mut desired) {
        desired.problem(NAME, problem);
    }
    desired.of_component_or_undecided(NAME)
}

fn want(config: &Config, docker: &Installed, wrapper: &Path, desired: &mut Desired) -> Result<(), String> {
    let text = docker.text.clone()?.unwrap_or_default();
    for note in &docker.notes {
        desired.note(NAME, note.as_str());
    }
    let file = docker.config.display();
    let known = match docker.known() {
        Ok(known) => known,
        // An edit would accept this text, and rocworker cannot read what a person decided in it.
        Err(error) if is_editable(&text) => {
            return Err(format!("{file}: {error}; docker is left as it is: correct that, then apply again"));
        }
        // What is not JSON is refused below, with its line.
        Err(_) => Value::Null,
    };
    let runtime = runtime(config, &known, wrapper);
    let runtime = runtime.map_err(|problem| desired.problem(NAME, format!("{file}: {problem}")));
    let cdi = match &docker.version {
        Ok(version) => cdi(config, docker, *version, &known),
        Err(reason) => {
            desired.problem(
                NAME,
                format!("the version of docker is unknown, and rocworker leaves CDI as it is: {reason}"),
            );
            // What is there as we would set it may be managed, and stays for that reason.
            let keys = cdi(config, docker, CDI, &known).unwrap_or_default();
            Ok(keys.into_iter().filter(|key| is_set(key, &known)).collect())
        }
    };
    let cdi = cdi.map_err(|problem| desired.problem(NAME, problem)).unwrap_or_default();
    if let Some(version) = docker.version.as_ref().ok().filter(|version| **version < CDI) {
        let name = &config.docker.runtime;
        desired.note(
            NAME,
            format!(
                "docker {version} knows no CDI (it came with {CDI}): containers get GPUs by --runtime {name} and \
                 AMD_VISIBLE_DEVICES alone"
            ),
        );
    }
    if config.wrapper.sharing == Sharing::Exclusive && config.wrapper.idle_grace_s.is_some() {
        desired.note(NAME, NEVER_IDLE);
    }
    let (has_cdi, is_cdi_new) = (!cdi.is_empty(), cdi.iter().any(|key| !is_set(key, &known)));
    let keys: Vec<Key> = cdi.into_iter().chain(runtime).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let edit = Edit::new(Format::Json, keys);
    edit.apply(&text).map_err(|fault| format!("{file}: {fault}: docker is left as it is"))?;
    let reason = format!("docker knows the runtime {}, and finds the GPUs", config.docker.runtime);
    let mut action = Action::edit(Stage::Expose, &docker.config, edit, &reason);
    if docker.unit.is_some() {
        if is_cdi_new && !outlived(&known) && config.restart != Restarts::Now {
            desired.note(NAME, WAITS);
        }
        let effects = |of_cdi| if of_cdi { restart(config, &known) } else { vec![reload()] };
        // An undo also turns off CDI if an earlier apply turned it on.
        action = action.reverted_with(effects(has_cdi));
        action.effects = effects(is_cdi_new);
    } else {
        desired.note(
            NAME,
            format!(
                "there is no {UNIT} to reload: whoever starts dockerd has to send it SIGHUP after a change of {file}"
            ),
        );
    }
    desired.push(action);
    Ok(())
}

/// The effects by which docker.service takes a change, by what its file says now.
pub(crate) fn restart_now(config: &Config, docker: &Installed) -> Vec<Effect> {
    // An unreadable file does not tell whether containers outlive dockerd.
    restart(config, &docker.known().unwrap_or(Value::Null))
}

/// The effect by which docker.service begins anew together with `unit`.
pub(crate) fn restart_with(config: &Config, docker: &Installed, unit: &str) -> Effect {
    start(config, &docker.known().unwrap_or(Value::Null), unit)
}

/// dockerd reads runtimes on SIGHUP, and CDI when it starts.
fn restart(config: &Config, known: &Value) -> Vec<Effect> {
    match start(config, known, UNIT) {
        // The reload makes the runtime known at once; CDI waits for a start, which stays pending and is reported till
        // then.
        start @ Effect::NextStart { .. } => vec![reload(), start],
        start => vec![start],
    }
}

/// dockerd stops its containers when it ends, unless its file says that it leaves them alive.
fn start(config: &Config, known: &Value, unit: &str) -> Effect {
    let unit = unit.to_owned();
    if config.restart == Restarts::Now {
        return Effect::Restart { unit, drain: None };
    }
    Effect::NextStart { unit, ask: outlived(known).then(ask) }
}

/// Whether containers are to outlive dockerd, by its file. dockerd reads the setting on SIGHUP, so that the running one
/// may not know it.
fn outlived(known: &Value) -> bool {
    known.get("live-restore") == Some(&Value::Bool(true))
}

/// The daemon of docker.service, whatever a context or DOCKER_HOST says.
fn ask() -> Ask {
    let argv = ["docker", "--host", "unix:///run/docker.sock", "info", "--format", "{{.LiveRestoreEnabled}}"];
    Ask { argv: argv.map(str::to_owned).to_vec(), yes: "true".to_owned() }
}

fn reload() -> Effect {
    Effect::Reload { unit: UNIT.to_owned() }
}

/// The managed runtime's key. It fails where another program uses the runtime's name.
fn runtime(config: &Config, known: &Value, wrapper: &Path) -> Result<Key, String> {
    let name = &config.docker.runtime;
    let path = wrapper.display().to_string();
    match known.get("runtimes").and_then(|runtimes| runtimes.get(name)) {
        None | Some(Value::Null) => {}
        // An entry that runs nothing may be the managed one, whose program a person removed: the receipt tells.
        Some(Value::Object(entry)) if is_wrapper(entry, &path) || runs_nothing(entry) => {}
        Some(entry) => {
            let other = entry.get("path").or_else(|| entry.get("runtimeType")).unwrap_or(entry);
            return Err(format!(
                "the runtime {name} is unmanaged ({other}) and is left alone: choose another name for rocworker's with \
                 docker.runtime"
            ));
        }
    }
    // Arguments that a person gave the runtime stay as long as the runtime.
    let set = Set::Entry {
        value: json!({ "path": path }),
        identity: "path".to_owned(),
        instead: vec!["runtimeType".to_owned()],
    };
    Ok(Key { path: vec!["runtimes".to_owned(), name.clone()], set })
}

fn is_editable(text: &str) -> bool {
    let key = Key { path: vec!["runtimes".to_owned()], set: Set::Needed(json!({})) };
    Edit::new(Format::Json, vec![key]).apply(text).is_ok()
}

fn runs_nothing(entry: &Map<String, Value>) -> bool {
    let is_empty = |key: &str| entry.get(key).is_none_or(|it| it.is_null() || it.as_str() == Some(""));
    is_empty("path") && is_empty("runtimeType")
}

fn is_wrapper(entry: &Map<String, Value>, wrapper: &str) -> bool {
    other_program(entry.get("path").and_then(Value::as_str), wrapper).is_none()
}

/// What has to be written for CDI in this release.
fn cdi(config: &Config, docker: &Installed, version: Version, known: &Value) -> Result<Vec<Key>, String> {
    let file = docker.config.display();
    let has = |option| docker.unit.as_ref().is_some_and(|line| line.has(option));
    if version < CDI {
        return Ok(Vec::new());
    }
    // Rocworker writes true, so that false is a person's decision.
    if known.pointer("/features/cdi") == Some(&Value::Bool(false)) {
        return Err(format!(
            "{file}: features.cdi is false: docker finds no GPU by --device until it is taken out"
        ));
    }
    if known.get("cdi-spec-dirs") == Some(&json!([""])) {
        return Err(format!(
            "{file}: cdi-spec-dirs names no folder, which switches CDI off: docker finds no GPU by --device until it is \
             taken out"
        ));
    }
    let mut keys = Vec::new();
    if version < CDI_BY_DEFAULT {
        if has("feature") {
            return Err(format!(
                "{UNIT} has --feature, beside which {file} may have no features: add --feature cdi there"
            ));
        }
        keys.push(Key { path: vec!["features".to_owned(), "cdi".to_owned()], set: Set::Value(json!(true)) });
    }
    if let Some(folder) = spec_folder(config) {
        if has("cdi-spec-dir") {
            return Err(format!(
                "{UNIT} has --cdi-spec-dir, beside which {file} may have no cdi-spec-dirs: add --cdi-spec-dir {folder} \
                 there"
            ));
        }
        keys.push(Key { path: vec!["cdi-spec-dirs".to_owned()], set: folder_beside(folder) });
    }
    Ok(keys)
}

/// Whether the file says what a key of CDI has to be.
fn is_set(key: &Key, known: &Value) -> bool {
    let held = key.path.iter().try_fold(known, |value, part| value.get(part));
    match &key.set {
        Set::Beside { member, .. } => {
            held.and_then(Value::as_array).is_some_and(|list| list.contains(member))
        }
        Set::Value(value) => held == Some(value),
        _ => held.is_some(),
    }
}
