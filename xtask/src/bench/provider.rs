//! TensorFusion's provider: a C program calls it as a hypervisor does, on a machine of 8 cards with 8 partitions each.

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use layout::Nodes;
use serde_json::Value;

use super::report::{Outcome, Report};
use crate::command::Command;
use crate::programs::Programs;
use crate::{provider, repository};

/// The budget.
const ALLOWED_MS: f64 = 20.0;

/// Six calls each that read, and two at each tenth.
const ROUNDS: &str = "1650";

/// A thread's stack and the allocator's pools vary by so much; a leak of a byte in each call would be less than 10 KiB.
const ALLOWED_GROWTH_KIB: f64 = 512.0;

/// Adds the rows.
pub(crate) fn measure(_: &Programs, work: &Path, report: &mut Report) -> Result<()> {
    let [time, growth] = match rounds(work) {
        Ok(measured) => measured.map(Ok),
        Err(error) => [(); 2].map(|()| Err(anyhow!("{error:#}"))),
    };
    report.add("provider, metrics of 64 devices, median", time, 1.0, "× 20 ms");
    report.add("provider, growth over 10,000 calls", growth, 1.0, "× 512 KiB");
    Ok(())
}

fn rounds(work: &Path) -> Result<[Outcome; 2]> {
    let folder = provider::built()?;
    let machine = work.join("provider-8x8");
    layout::Machine::instinct_with_readings(8, 8)
        .lay_out(&machine, Nodes::Recorded)
        .context("laying a machine out")?;
    let program = work.join("rounds");
    let source = repository::top().join("crates/accelerator-amd/tests/c/rounds.c");
    Command::new(["gcc", "-O1", "-pthread", "-I"])
        .arguments([folder.as_os_str(), source.as_os_str(), "-o".as_ref(), program.as_os_str()])
        .run()?;
    let printed = Command::new([program.as_os_str(), folder.join("libaccelerator_amd.so").as_os_str()])
        .arguments([ROUNDS])
        .environment("ACCELERATOR_AMD_ROOT", &machine)
        .read()?;
    let measured: Value = serde_json::from_str(&printed).context("what the measurement prints")?;
    ensure!(measured["devices"] == 64, "the provider does not list 64 devices: {printed}");
    let number = |value: &Value| value.as_f64().with_context(|| format!("a number is missing in {printed}"));
    let [median, p99] = ["median", "p99"].map(|name| number(&measured["metrics_ms"][name]));
    let (median, p99) = (median?, p99?);
    let resident = &measured["resident_kib"];
    let (early, late) = (number(&resident[0])?, number(&resident[1])?);
    Ok([
        Outcome { figures: format!("{median:.1} ms, p99 {p99:.1} ms"), ratio: median / ALLOWED_MS },
        Outcome {
            figures: format!("{early} KiB after a tenth, {late} KiB after all"),
            ratio: (late - early).max(0.0) / ALLOWED_GROWTH_KIB,
        },
    ])
}
