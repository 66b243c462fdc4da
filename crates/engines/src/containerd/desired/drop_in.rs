//! containerd 2: rocworker's drop-in, and at most an import of it in the main file.

use std::path::{Path, PathBuf};

use edit::{Edit, Format, Key, Set};
use reconcile::{Action, Desired, Stage};
use serde_json::{Value, json};

use super::settings::Settings;
use super::{NAME, RUNTIME_TYPE, Wanted};
use crate::{containerd, with_folder};

/// The version of the file that every release of containerd 2 reads.
const VERSION: u64 = 3;

pub(super) fn want(wanted: &Wanted<'_>, settings: &Settings, desired: &mut Desired) -> Result<(), String> {
    let main = wanted.containerd.main().ok_or("it has no main file")?;
    let path = containerd::drop_in(&main.path);
    let version = settings.main_version.unwrap_or(VERSION);
    let context = json!({
        "version": version,
        "section": settings.section,
        "runtime": wanted.runtime,
        "wrapper": wanted.wrapper,
        "systemd_cgroup": settings.systemd_cgroup(),
        // Only where it is switched off: on is the default.
        "enable_cdi": settings.cri.get("enable_cdi") == Some(&false.into()),
        "cdi_spec_dirs": cdi_dirs(wanted, settings),
    });
    let program =
        ["plugins", settings.section, "containerd", "runtimes", wanted.runtime, "options", "BinaryName"];
    let (text, made) =
        crate::drop_in(wanted.templates, render::CONTAINERD, &context, (&program, wanted.wrapper))?;
    if made.get("version").and_then(Value::as_u64) != Some(version) {
        let place = wanted.templates.place(render::CONTAINERD);
        return Err(format!("{place}: what it makes has not the main file's version"));
    }
    let reason = format!("containerd runs containers of runtime {} through the wrapper", wanted.runtime);
    let pattern = pattern(&path);
    let edit = (!main.covers(&path, &pattern)).then(|| import(settings, &pattern));
    if let Some(edit) = &edit {
        let text = main.text.clone()?.unwrap_or_default();
        edit.apply(&text).map_err(|fault| format!("{}: {fault}", main.path.display()))?;
    }
    if settings.main_version.is_none()
        && main.parsed.as_ref().is_ok_and(|parsed| parsed.get("plugins").is_some())
    {
        desired.note(
            NAME,
            format!(
                "{} has no version: containerd 2.1 takes it for version 1 and ignores what it says of CRI; `containerd \
                 config migrate` brings it up to date",
                main.path.display()
            ),
        );
    }
    for (later, setting) in overridden(wanted, settings) {
        desired.problem(
            NAME,
            format!(
                "{} is loaded after {} and says {setting}, which wins: take that out there",
                later.display(),
                path.display()
            ),
        );
    }
    desired.push(wanted.with_restart(Action::file(Stage::Expose, &path, text, &reason)));
    if let Some(edit) = edit {
        let reason = "containerd reads our drop-in";
        desired.push(wanted.with_restart(Action::edit(Stage::Expose, &main.path, edit, reason)));
    }
    Ok(())
}

/// Settings that differ from the wanted ones in files that containerd loads after rocworker's drop-in. The last file
/// that has a setting counts.
fn overridden<'a>(wanted: &Wanted<'_>, settings: &'a Settings) -> Vec<(&'a Path, String)> {
    let last = |pointer: &str| {
        let of = |(path, cri): &'a (PathBuf, Value)| Some((path.as_path(), cri.pointer(pointer)?));
        settings.later.iter().filter_map(of).next_back()
    };
    let own = |key: &str| format!("/containerd/runtimes/{}/{key}", wanted.runtime);
    let differing = [
        ("enable_cdi", last("/enable_cdi").filter(|(_, value)| **value == Value::Bool(false))),
        (
            "cdi_spec_dirs",
            last("/cdi_spec_dirs").filter(|(_, value)| {
                let has = |dir: &str| value.as_array().is_some_and(|dirs| dirs.iter().any(|it| it == dir));
                wanted.cdi_dir.is_some_and(|dir| !has(dir))
            }),
        ),
        ("runtime_type", last(&own("runtime_type")).filter(|(_, value)| **value != RUNTIME_TYPE)),
        ("BinaryName", last(&own("options/BinaryName")).filter(|(_, value)| **value != wanted.wrapper)),
    ];
    let found =
        differing.into_iter().filter_map(|(key, found)| found.map(|(path, value)| (path, key, value)));
    found.map(|(path, key, value)| (path, format!("{key} = {value}"))).collect()
}

/// The whole list of folders, where it lacks the spec's folder: a list in a file replaces containerd's default.
fn cdi_dirs(wanted: &Wanted<'_>, settings: &Settings) -> Vec<Value> {
    let Some(folder) = wanted.cdi_dir else { return Vec::new() };
    let is_there = settings.cdi_dirs().is_some_and(|dirs| dirs.iter().any(|it| it == folder));
    if is_there { Vec::new() } else { with_folder(settings.cdi_dirs(), folder) }
}

/// What the main file imports. A file that it names and that is not there keeps containerd from starting; a pattern
/// that matches nothing does not (*observed* with 2.1.9).
fn pattern(drop_in: &Path) -> String {
    format!("{}*.toml", drop_in.with_extension("").display())
}

fn import(settings: &Settings, pattern: &str) -> Edit {
    let mut keys = Vec::new();
    // A file without a version counts as version 1. One that says something else is left to be that.
    if settings.main_is_empty || settings.main_version.is_some() {
        let version = settings.main_version.unwrap_or(VERSION);
        keys.push(Key { path: vec!["version".to_owned()], set: Set::Needed(version.into()) });
    }
    keys.push(Key { path: vec!["imports".to_owned()], set: Set::Member(pattern.into()) });
    Edit::new(Format::Toml, keys)
}
