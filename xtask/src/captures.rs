//! `cargo xtask captures`: the machines of tests/captures as folders that `rocworker --root` reads.

use std::fs;

use anyhow::{Context, Result};
use layout::Nodes;
use support::captures::ALL;

use crate::refusal::Refusal;
use crate::repository;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let names: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
    let is_wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|wanted| wanted == name);
    if let Some(unknown) = arguments.iter().find(|wanted| !names.contains(&wanted.as_str())) {
        return Err(Refusal::new(format!(
            "{unknown} is none of the captured machines: {}",
            names.join(", ")
        )));
    }
    for (name, machine) in ALL.iter().filter(|(name, _)| is_wanted(name)) {
        let folder = repository::target().join("captures").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
        }
        machine().lay_out(&folder, Nodes::Recorded).with_context(|| format!("laying out {name}"))?;
        println!("rocworker --root {} detect", folder.display());
    }
    Ok(())
}
