//! `cargo xtask bench`: each budget of the design as a ratio taken in one run, on the machine that runs it.

mod apply;
mod daemon;
mod detect;
mod fleet;
mod machine;
mod report;
mod scrape;
mod timing;
mod wrapper;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::programs::Programs;
use crate::refusal::Refusal;
use report::Report;

/// Measures, prints, and fails when a budget is over or could not be measured.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let only = match arguments {
        [] => "",
        [only] => only,
        _ => {
            return Err(Refusal::new(
                "`cargo xtask bench` takes a part of a name: wrapper, detect, apply, …",
            ));
        }
    };
    let work = tempfile::Builder::new().prefix("rocworker-bench-").tempdir().context("making a folder")?;
    let work = work.path();
    let programs = Programs::built()?;
    let mut report = Report::default();
    for (name, measure) in [
        ("wrapper", wrapper::measure as fn(&Programs, &Path, &mut Report) -> Result<()>),
        ("detect", detect::measure),
        ("apply", apply::measure),
        ("daemon", daemon::measure),
        ("fleet", fleet::measure),
        ("scrape", scrape::measure),
    ] {
        if name.contains(only) {
            println!("measuring: {name}");
            measure(&programs, work, &mut report).with_context(|| format!("measuring {name}"))?;
        }
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
