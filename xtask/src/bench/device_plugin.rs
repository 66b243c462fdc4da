//! `rocworker-device-plugin` beside a kubelet's stand-in, on a machine of 8 cards with 8 partitions each.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use super::report::{Outcome, Report};
use crate::command::Command;
use crate::programs::{Programs, target};
use crate::repository;

const PACKAGE: &str = "rocworker-device-plugin";

/// The and the design's budgets.
const ALLOWED_CHANGE_MS: f64 = 1_000.0;
const ALLOWED_ALLOCATE_MS: f64 = 2.0;
const RESIDENT_KIB: f64 = 16.0 * 1024.0;

/// Adds the rows.
pub(crate) fn measure(_: &Programs, work: &Path, report: &mut Report) -> Result<()> {
    let [change, allocate, resident] = match measured(work) {
        Ok(measured) => measured.map(Ok),
        Err(error) => [(); 3].map(|()| Err(anyhow!("{error:#}"))),
    };
    report.add("device plugin, change of partitions → kubelet, worst of 20", change, 1.0, "× 1 s");
    report.add("device plugin, Allocate of 64 devices, p99 of 1,000", allocate, 1.0, "× 2 ms");
    report.add("device plugin, resident", resident, 1.0, "× 16 MiB");
    Ok(())
}

fn measured(work: &Path) -> Result<[Outcome; 3]> {
    let target = target();
    Command::new(["cargo", "build", "--locked", "--release", "--target", &target])
        .arguments(["--package", PACKAGE, "--bins", "--examples"])
        .run()?;
    let folder: PathBuf = repository::target().join(target).join("release");
    let work = work.join("device-plugin");
    let printed = Command::new([folder.join("examples/measure"), folder.join(PACKAGE), work]).read()?;
    // Milliseconds, and KiB: examples/measure.rs of the package.
    let measured: Value = serde_json::from_str(&printed).context("what the measurement prints")?;
    let times = |name: &str| -> Result<Vec<f64>> {
        let times = measured[name].as_array().with_context(|| format!("the measurement prints no {name}"))?;
        let mut times: Vec<f64> = times.iter().filter_map(Value::as_f64).collect();
        times.sort_by(f64::total_cmp);
        Ok(times)
    };
    let (changes, allocations) = (times("changes")?, times("allocations")?);
    ensure!(allocations.len() >= 1_000 && changes.len() >= 20, "too few were measured: {printed}");
    let p99 = *allocations.get(allocations.len() * 99 / 100).context("no call")?;
    let worst = *changes.last().context("no change")?;
    let resident = measured["resident"].as_f64().context("the measurement prints no memory")?;
    Ok([
        Outcome { figures: format!("{worst:.0} ms"), ratio: worst / ALLOWED_CHANGE_MS },
        Outcome { figures: format!("{p99:.2} ms"), ratio: p99 / ALLOWED_ALLOCATE_MS },
        Outcome { figures: format!("{resident} KiB"), ratio: resident / RESIDENT_KIB },
    ])
}
