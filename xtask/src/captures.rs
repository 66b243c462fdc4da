//! `cargo xtask captures`: the machines of tests/captures, and the demo's under a load, as folders that `rocworker --root`
//! reads.

use std::fs;

use anyhow::{Context, Result};
use layout::{Machine, Nodes};
use support::captures::ALL;

use crate::refusal::Refusal;
use crate::repository;

/// Synthetic: what `rocworker demo --keep` leaves, with readings, processes and a hang, which no capture has.
const DEMO: (&str, fn() -> Machine) = ("demo", Machine::demo_under_load);

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let machines = [ALL.as_slice(), &[DEMO]].concat();
    let names: Vec<&str> = machines.iter().map(|(name, _)| *name).collect();
    let is_wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|wanted| wanted == name);
    if let Some(unknown) = arguments.iter().find(|wanted| !names.contains(&wanted.as_str())) {
        return Err(Refusal::new(format!(
            "{unknown} is none of the captured machines: {}",
            names.join(", ")
        )));
    }
    for (name, machine) in machines.iter().filter(|(name, _)| is_wanted(name)) {
        let folder = repository::target().join("captures").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
        }
        machine().lay_out(&folder, Nodes::Recorded).with_context(|| format!("laying out {name}"))?;
        let commands: &[&str] = if *name == DEMO.0 {
            &["detect", "top", "health", "metrics", "explain --journal"]
        } else {
            &["detect"]
        };
        for command in commands {
            println!("rocworker --root {} {command}", folder.display());
        }
    }
    Ok(())
}
