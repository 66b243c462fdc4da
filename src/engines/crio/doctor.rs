//! CRI-O: its drop-in as it was meant, and what the CRI-O that runs says of itself.

use std::path::Path;

use edit::Format;
use serde_json::Value;

use super::desired::actions;
use super::{Crio, NAME, UNIT};
use crate::check::{About, Check};
use crate::engines::Versions;
use crate::engines::examined::{APPLY, CHECKS, Examined, PATIENCE};

const TAKE_IN: &str = "systemctl restart crio takes it in; containers go on";

pub(super) fn check(examined: &Examined<'_>, versions: &mut Versions<'_>) -> Vec<Check> {
    let about = || About::one(CHECKS, NAME);
    let Some(crio) = Crio::read(examined.root, examined.config, versions) else {
        return vec![about().skipped("not installed")];
    };
    let wrapper = match examined.wrapper(NAME) {
        Ok(wrapper) => wrapper,
        Err(checks) => return checks,
    };
    let desired = actions(examined.config, &crio, &examined.templates, wrapper);
    let mut checks = examined.as_meant(NAME, UNIT, &desired);
    checks.extend(running(examined, &crio, wrapper));
    checks
}

/// What it says that it runs with; nothing where that would be another machine's.
fn running(examined: &Examined<'_>, crio: &Crio, wrapper: &Path) -> Vec<Check> {
    let about = || About::one(CHECKS, NAME);
    let Some(programs) = examined.programs else {
        return vec![about().skipped("reads a Root: no CRI-O is asked what is in effect")];
    };
    let program = crio.program.display().to_string();
    let said = match programs.run(&[&program, "status", "config"], PATIENCE) {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => return vec![about().skipped(format!("no CRI-O answers what is in effect: {error}"))],
    };
    match Format::Toml.read(&said) {
        Ok(said) => vec![runtime(examined, wrapper, &said), cdi(examined, &said)],
        Err(fault) => {
            vec![about().failed(format!("what crio status config prints is no TOML: {fault}"), APPLY)]
        }
    }
}

fn runtime(examined: &Examined<'_>, wrapper: &Path, said: &Value) -> Check {
    let about = About::one(CHECKS, NAME);
    let name = &examined.config.crio.runtime;
    let entry = said.pointer("/crio/runtime/runtimes").and_then(|runtimes| runtimes.get(name));
    match entry.map(|entry| entry.get("runtime_path").and_then(Value::as_str).unwrap_or_default()) {
        Some(path) if Path::new(path) == wrapper => {
            about.ok(format!("CRI-O runs {path} for the runtime {name}"))
        }
        Some(other) => about.failed(
            format!("CRI-O runs {other:?} for the runtime {name}, not {}", wrapper.display()),
            TAKE_IN,
        ),
        None => about.failed(format!("the CRI-O that runs has no runtime {name}"), TAKE_IN),
    }
}

fn cdi(examined: &Examined<'_>, said: &Value) -> Check {
    let about = About::one(CHECKS, NAME);
    let folder = examined.config.cdi.path.parent().unwrap_or(Path::new("/"));
    let dirs = said.pointer("/crio/runtime/cdi_spec_dirs").and_then(Value::as_array);
    if dirs.is_some_and(|dirs| dirs.iter().any(|it| it.as_str().map(Path::new) == Some(folder))) {
        about.ok(format!("CRI-O reads CDI specs from {}", folder.display()))
    } else {
        about.failed(format!("CRI-O reads no CDI specs from {}", folder.display()), TAKE_IN)
    }
}
