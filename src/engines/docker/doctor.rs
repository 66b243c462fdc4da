//! docker: daemon.json as it was meant, and what the dockerd that runs says of itself.

use std::path::Path;

use reconcile::command::Programs;
use serde_json::Value;

use super::desired::actions;
use super::{NAME, UNIT};
use crate::check::{About, Check};
use crate::engines::examined::{CHECKS, Examined, PATIENCE};
use crate::engines::{Docker, Versions};

const TAKE_IN: &str = "systemctl reload docker takes the runtime in, systemctl restart docker CDI too";

pub(super) fn check(examined: &Examined<'_>, versions: &mut Versions<'_>) -> Vec<Check> {
    let about = || About::one(CHECKS, NAME);
    let docker = Docker::read(examined.root, &examined.config.docker.config, versions);
    if docker.installed.is_none() {
        let why = if docker.is_snap { "a snap, which is left alone" } else { "not installed" };
        return vec![about().skipped(why)];
    }
    let wrapper = match examined.wrapper(NAME) {
        Ok(wrapper) => wrapper,
        Err(checks) => return checks,
    };
    let desired = actions(examined.config, &docker, wrapper);
    let mut checks = examined.as_meant(NAME, UNIT, &desired);
    checks.extend(running(examined, wrapper));
    checks
}

/// What dockerd says that runs; nothing where that would be another machine's.
fn running(examined: &Examined<'_>, wrapper: &Path) -> Vec<Check> {
    let about = || About::one(CHECKS, NAME);
    let Some(programs) = examined.programs else {
        return vec![about().skipped("reads a Root: no dockerd is asked what is in effect")];
    };
    let info = match info(programs) {
        Ok(info) => info,
        Err(why) => return vec![about().skipped(format!("no dockerd answers what is in effect: {why}"))],
    };
    vec![runtime(examined, wrapper, &info), cdi(examined, &info)]
}

fn info(programs: &Programs) -> Result<Value, String> {
    let argv = ["docker", "info", "--format", "{{json .}}"];
    let output = programs.run(&argv, PATIENCE).map_err(|error| error.to_string())?;
    let info: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    // Some releases of the client end well without a daemon.
    match info.pointer("/ServerErrors/0").and_then(Value::as_str) {
        Some(error) => Err(error.to_owned()),
        None => Ok(info),
    }
}

fn runtime(examined: &Examined<'_>, wrapper: &Path, info: &Value) -> Check {
    let about = About::one(CHECKS, NAME);
    let name = &examined.config.docker.runtime;
    let entry = info.get("Runtimes").and_then(|runtimes| runtimes.get(name));
    match entry.map(|entry| entry.get("path").and_then(Value::as_str)) {
        Some(Some(path)) if Path::new(path) == wrapper => {
            about.ok(format!("dockerd runs {path} for the runtime {name}"))
        }
        Some(other) => about.failed(
            format!(
                "dockerd runs {} for the runtime {name}, not {}",
                other.unwrap_or("something else"),
                wrapper.display()
            ),
            TAKE_IN,
        ),
        None => about.failed(format!("the dockerd that runs has no runtime {name}"), TAKE_IN),
    }
}

fn cdi(examined: &Examined<'_>, info: &Value) -> Check {
    let about = About::one(CHECKS, NAME);
    let folder = examined.config.cdi.path.parent().unwrap_or(Path::new("/"));
    // Absent before docker 25, which knows no CDI; empty where it is off (moby's api/types/system.Info).
    match info.get("CDISpecDirs") {
        None => about.skipped("this dockerd says nothing of CDI: it came with docker 25"),
        Some(Value::Array(folders))
            if folders.iter().any(|it| it.as_str().map(Path::new) == Some(folder)) =>
        {
            about.ok(format!("dockerd reads CDI specs from {}", folder.display()))
        }
        Some(_) => about.failed(format!("dockerd reads no CDI specs from {}", folder.display()), TAKE_IN),
    }
}
