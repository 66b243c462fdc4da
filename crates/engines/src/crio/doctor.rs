//! CRI-O: its drop-in as it was meant, and what the CRI-O that runs says of itself.

use check::{APPLY, About, Check};
use edit::Format;
use reconcile::command::Programs;
use serde_json::Value;

use super::desired::actions;
use super::{Crio, ENGINE, NAME};
use crate::Versions;
use crate::examined::{CHECKS, Examined, InEffect, PATIENCE, folders};

const RESTART: &str = "systemctl restart crio makes CRI-O read it; containers go on";

pub(super) fn check(examined: &Examined<'_>, versions: &mut Versions<'_>) -> Result<Vec<Check>, Check> {
    let config = examined.config;
    let Some(crio) = Crio::read(examined.root, config, versions) else {
        return Err(About::one(CHECKS, NAME).skipped("not installed"));
    };
    let desired = |wrapper: &_| actions(config, &crio, &examined.templates, wrapper);
    examined.engine(&ENGINE, ("CRI-O", RESTART), desired, |programs| {
        let running = running(programs, &crio)?;
        let runtimes = running.pointer("/crio/runtime/runtimes");
        let runtime = runtimes.and_then(|runtimes| runtimes.get(&config.crio.runtime));
        let path = |runtime: &Value| runtime.get("runtime_path")?.as_str().map(str::to_owned);
        Ok(InEffect {
            runtime: runtime.map(|it| path(it).unwrap_or_else(|| "a program of its own".to_owned())),
            spec_folders: Ok(running.pointer("/crio/runtime/cdi_spec_dirs").map_or_else(Vec::new, folders)),
        })
    })
}

fn running(programs: &Programs, crio: &Crio) -> Result<Value, Check> {
    let about = About::one(CHECKS, NAME);
    let program = crio.program.display().to_string();
    match programs.run(&[&program, "status", "config"], PATIENCE) {
        Err(error) => Err(about.skipped(format!("no CRI-O answers what is in effect: {error}"))),
        Ok(output) => Format::Toml.read(&String::from_utf8_lossy(&output.stdout)).map_err(|fault| {
            about.failed(format!("what crio status config prints is no TOML: {fault}"), APPLY)
        }),
    }
}
