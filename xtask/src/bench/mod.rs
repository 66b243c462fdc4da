//! `cargo xtask bench`: each budget of the design as a ratio taken in one run, on the machine that runs it.

mod apply;
mod daemon;
mod detect;
mod device_plugin;
mod fleet;
mod hip_remote;
mod machine;
mod provider;
mod report;
mod scrape;
mod timing;
mod wrapper;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::programs::Programs;
use crate::refusal::Refusal;
use report::Report;

/// Adds rows to the report, with what it needs in a folder of its own.
type Measure = fn(&Programs, &Path, &mut Report) -> Result<()>;

/// Measures, prints, and fails when a budget is over or could not be measured.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let all: [(&str, Measure); 9] = [
        ("wrapper", wrapper::measure),
        ("detect", detect::measure),
        ("apply", apply::measure),
        ("daemon", daemon::measure),
        ("fleet", fleet::measure),
        ("scrape", scrape::measure),
        ("device-plugin", device_plugin::measure),
        ("provider", provider::measure),
        ("hip-remote", hip_remote::measure),
    ];
    let is_wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|wanted| wanted == name);
    if let Some(unknown) = arguments.iter().find(|wanted| all.iter().all(|(name, _)| name != wanted)) {
        return Err(Refusal::new(format!("`cargo xtask bench` does not know {unknown}")));
    }
    let work = tempfile::Builder::new().prefix("rocworker-bench-").tempdir().context("making a folder")?;
    let programs = Programs::built()?;
    let mut report = Report::default();
    for (name, measure) in all.into_iter().filter(|(name, _)| is_wanted(name)) {
        println!("measuring: {name}");
        measure(&programs, work.path(), &mut report).with_context(|| format!("measuring {name}"))?;
    }
    println!("\n{}\n\n{report}", report::about_this_machine()?);
    let failed = report.failed();
    if !failed.is_empty() {
        bail!("over a budget, or not measured: {}", failed.join("; "));
    }
    Ok(())
}

/// A field of proc_pid_status(5) in KiB.
fn memory_kib(pid: u32, field: &str) -> Result<f64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    kib.with_context(|| format!("{path} names no {field}"))
}

/// A program that serves until this is dropped.
struct Served(std::process::Child);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
