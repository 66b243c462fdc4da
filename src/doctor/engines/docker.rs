//! docker: daemon.json as it was meant, and what the dockerd that runs says of itself.

use std::path::Path;

use reconcile::command::Programs;
use serde_json::Value;

use super::{Ground, NAME, PATIENCE, left_alone};
use crate::check::{About, Check};
use crate::engines::{Docker, Versions};
use crate::worker::docker::actions;

const ENGINE: &str = "docker";
const UNIT: &str = "docker.service";
const TAKE_IN: &str = "systemctl reload docker takes the runtime in, systemctl restart docker CDI too";

pub(super) fn check(ground: &Ground<'_>, versions: &mut Versions<'_>) -> Vec<Check> {
    if let Some(left) = left_alone(ENGINE, ground.config.docker.configure) {
        return vec![left];
    }
    let about = || About::one(NAME, ENGINE);
    let docker = Docker::read(ground.root, &ground.config.docker.config, versions);
    if docker.installed.is_none() {
        let why = if docker.is_snap { "a snap, which is left alone" } else { "not installed" };
        return vec![about().skipped(why)];
    }
    let wrapper = match ground.wrapper(ENGINE) {
        Ok(wrapper) => wrapper,
        Err(checks) => return checks,
    };
    let desired = actions(ground.config, &docker, wrapper);
    let mut checks = ground.files(ENGINE, &desired);
    if checks.is_empty() {
        checks.extend(
            desired
                .actions
                .first()
                .map(|action| about().ok(format!("{} says what was meant", action.path.display()))),
        );
    }
    checks.extend(ground.owed(ENGINE, UNIT));
    checks.extend(running(ground, wrapper));
    checks
}

/// What dockerd says that runs; nothing where that would be another machine's.
fn running(ground: &Ground<'_>, wrapper: &Path) -> Vec<Check> {
    let about = || About::one(NAME, ENGINE);
    let Some(programs) = ground.programs else {
        return vec![about().skipped("reads a Root: no dockerd is asked what is in effect")];
    };
    let info = match info(programs) {
        Ok(info) => info,
        Err(why) => return vec![about().skipped(format!("no dockerd answers what is in effect: {why}"))],
    };
    vec![runtime(ground, wrapper, &info), cdi(ground, &info)]
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

fn runtime(ground: &Ground<'_>, wrapper: &Path, info: &Value) -> Check {
    let about = About::one(NAME, ENGINE);
    let name = &ground.config.docker.runtime;
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

fn cdi(ground: &Ground<'_>, info: &Value) -> Check {
    let about = About::one(NAME, ENGINE);
    let folder = ground.config.cdi.path.parent().unwrap_or(Path::new("/"));
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
