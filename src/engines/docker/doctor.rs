//! docker: daemon.json as it was meant, and what the dockerd that runs says of itself.

use std::time::Duration;

use reconcile::command::Programs;
use serde_json::Value;

use super::desired::actions;
use super::{ENGINE, NAME};
use crate::check::{About, Check};
use crate::engines::examined::{CHECKS, Examined, InEffect, PATIENCE, folders};
use crate::engines::{Docker, Versions};

const RESTART: &str =
    "systemctl reload docker makes dockerd read the runtime, systemctl restart docker CDI too";

pub(super) fn check(examined: &Examined<'_>, versions: &mut Versions<'_>) -> Result<Vec<Check>, Check> {
    let (about, config) = (About::one(CHECKS, NAME), examined.config);
    let docker = Docker::read(examined.root, &config.docker.config, versions);
    if docker.installed.is_none() {
        let why = if docker.is_snap { "a snap, which is left alone" } else { "not installed" };
        return Err(about.skipped(why));
    }
    let desired = |wrapper: &_| actions(config, &docker, wrapper);
    examined.engine(&ENGINE, ("dockerd", RESTART), desired, |programs| {
        let info = info(programs, PATIENCE).map_err(|error| {
            about.clone().skipped(format!("no dockerd answers what is in effect: {error}"))
        })?;
        let runtime = info.get("Runtimes").and_then(|runtimes| runtimes.get(&config.docker.runtime));
        let path = |runtime: &Value| {
            runtime.get("path").and_then(Value::as_str).unwrap_or("something else").to_owned()
        };
        // Absent before docker 25, which knows no CDI; empty where it is off (moby's api/types/system.Info).
        let spec_folders = info.get("CDISpecDirs").map(folders);
        Ok(InEffect {
            runtime: runtime.map(path),
            spec_folders: spec_folders
                .ok_or("this dockerd says nothing of CDI: it came with docker 25".to_owned()),
        })
    })
}

pub(super) fn info(programs: &Programs, limit: Duration) -> Result<Value, String> {
    let argv = ["docker", "info", "--format", "{{json .}}"];
    let output = programs.run(&argv, limit).map_err(|error| error.to_string())?;
    let info: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    // Some releases of the client end well without a daemon.
    match info.pointer("/ServerErrors/0").and_then(Value::as_str) {
        Some(error) => Err(error.to_owned()),
        None => Ok(info),
    }
}
