//! Checks the system's containerd: its files, and its own `config dump`, which shows what its files and defaults amount
//! to.

use cdi::DEFAULT_FOLDERS;
use check::{About, Check};
use edit::Format;
use reconcile::command::Programs;
use serde_json::Value;

use super::desired::actions;
use super::{ENGINE, NAME, SECTIONS};
use crate::examined::{CHECKS, Examined, InEffect, PATIENCE, folders};
use crate::{Containerd, Version, Versions};

/// The first release whose CRI knows CDI.
const CDI: Version = Version { major: 1, minor: 7, patch: 0 };

const APPLY: &str =
    "rocworker apply; where that changes nothing, another file has it: see imports in containerd config dump";

pub(super) fn check(examined: &Examined<'_>, versions: &mut Versions<'_>) -> Result<Vec<Check>, Check> {
    let config = examined.config;
    let Some(containerd) = Containerd::read(examined.root, config, versions) else {
        return Err(About::one(CHECKS, NAME).skipped("not installed"));
    };
    let desired = |wrapper: &_| actions(config, &containerd, &examined.templates, wrapper);
    examined.engine(&ENGINE, ("containerd", APPLY), desired, |programs| {
        in_effect(examined, &containerd, programs)
    })
}

/// The settings that containerd would run with, by its own word.
fn in_effect(
    examined: &Examined<'_>,
    containerd: &Containerd,
    programs: &Programs,
) -> Result<InEffect, Check> {
    let about = || About::one(CHECKS, NAME);
    let version = match &containerd.version {
        Ok(version) => *version,
        Err(why) => return Err(about().failed(why.clone(), "see whether containerd can be run")),
    };
    let program = containerd.program.display().to_string();
    let main = containerd.main().map_or(&examined.config.containerd.config, |file| &file.path);
    let text = main.display().to_string();
    // containerd 1.x dumps nothing without the file, and runs with its defaults.
    let argv = if examined.root.exists(main) {
        vec![&*program, "--config", &text, "config", "dump"]
    } else {
        vec![&*program, "config", "default"]
    };
    let dump = programs
        .run(&argv, PATIENCE)
        .map_err(|error| about().failed(error.to_string(), format!("correct {text}")))?;
    let dump = Format::Toml
        .read(&String::from_utf8_lossy(&dump.stdout))
        .map_err(|_| about().failed("its config dump is no TOML", "run it by hand"))?;
    let disabled = dump.get("disabled_plugins").map_or_else(Vec::new, folders);
    let is_disabled = disabled.iter().any(|id| SECTIONS.contains(&id.as_str()));
    // The newest section is the whole one: an older one may hold a part of the settings, too.
    let section = SECTIONS.iter().rev().find_map(|name| dump.get("plugins")?.get(name));
    let Some(section) = section.filter(|_| !is_disabled) else {
        return Err(about().skipped(
            "its CRI plugin is switched off (disabled_plugins), as Docker's packages have it: no runtime is set",
        ));
    };
    let runtimes = section.pointer("/containerd/runtimes");
    let runtime = runtimes.and_then(|it| it.get(&examined.config.containerd.runtime));
    let program = |runtime: &Value| {
        runtime.pointer("/options/BinaryName").and_then(Value::as_str).unwrap_or("runc").to_owned()
    };
    let spec_folders = match section.get("cdi_spec_dirs") {
        _ if version < CDI => Err(format!("containerd {version} knows no CDI (it came with 1.7)")),
        _ if section.get("enable_cdi").and_then(Value::as_bool) != Some(true) => Ok(Vec::new()),
        Some(list) => Ok(folders(list)),
        None => Ok(DEFAULT_FOLDERS.map(str::to_owned).into()),
    };
    Ok(InEffect { runtime: runtime.map(program), spec_folders })
}
