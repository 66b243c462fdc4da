//! HIP over the network, beside raw sockets in turns of one run: hip-remote/tests/it/examples/bench.rs measures.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

use super::report::{Outcome, Report};
use crate::hip_remote::{RELEASE, built, cargo};
use crate::programs::Programs;

/// The smallest copies for which the design has a budget, and larger ones, in bytes.
const SIZES: [(u64, &str); 2] = [(8 << 20, "8 MiB"), (64 << 20, "64 MiB")];

/// The delay of the bench's relay there and back, twice, and what the wire may take beside.
const ALLOWED_DISTANT_NS: f64 = 2.0 * 130e6 + 20e6;

/// Adds the rows.
pub(crate) fn measure(_: &Programs, _: &Path, report: &mut Report) -> Result<()> {
    let folder = built(&RELEASE)?;
    let printed = cargo("run")
        .arguments([
            "--locked",
            "--release",
            "--quiet",
            "--package",
            "hip-remote-tests",
            "--example",
            "bench",
        ])
        .environment("ROCWORKER_HIP_BUILT", folder)
        .read()?;
    let measured: Value = serde_json::from_str(&printed).context("what the measurement prints")?;
    let figure = |place: &str, name: &str| {
        measured[place][name].as_f64().ok_or_else(|| anyhow!("{name} of {place} is missing in {printed}"))
    };
    let locally = |ours: f64, name: &str| {
        figure("local", name).map(|local| format!("local {}, share {:.3}", shown(local), local / ours))
    };
    let time = |place: &str, name: &str, allowed: f64| {
        let ours = figure(place, name)?;
        Ok(Outcome { figures: format!("{}; {}", shown(ours), locally(ours, name)?), ratio: ours / allowed })
    };
    let synchronous = figure("plain", "sync_ns").and_then(|ours| {
        let raw = figure("raw", "sync_ns")?;
        let figures = format!("{}, raw {}; {}", shown(ours), shown(raw), locally(ours, "sync_ns")?);
        Ok(Outcome { figures, ratio: ours / raw })
    });
    report.add("hip-remote, synchronous call, median", synchronous, 1.25, "× raw TCP");
    report.add("hip-remote, launch", time("plain", "launch_ns", 300.0), 1.0, "× 300 ns");
    report.add("hip-remote, asynchronous memset", time("plain", "memset_ns", 300.0), 1.0, "× 300 ns");
    for (bytes, size) in SIZES {
        for (place, beside, way, share) in [
            ("plain", "raw", "h2d", 0.95),
            ("plain", "raw", "d2h", 0.90),
            ("tls", "rustls", "h2d", 0.90),
            ("tls", "rustls", "d2h", 0.90),
        ] {
            let name = format!("{way}_{bytes}");
            let outcome = figure(place, &name).and_then(|ours| {
                let (raw, local) = (figure(beside, &name)?, figure("local", &name)?);
                let figures = format!(
                    "{:.2} GB/s, {beside} {:.2} GB/s, share {:.3}; local {:.2} GB/s, share {:.3}",
                    ours / 1e9,
                    raw / 1e9,
                    ours / raw,
                    local / 1e9,
                    ours / local
                );
                Ok(Outcome { figures, ratio: raw / ours })
            });
            let what = format!("hip-remote, {} of {size}, {place}", way.to_uppercase());
            report.add(
                &what,
                outcome,
                1.0 / share,
                if beside == "raw" { "× raw TCP's time" } else { "× rustls' time" },
            );
        }
    }
    let distant = time("distant", "pipeline_ns", ALLOWED_DISTANT_NS);
    report.add("hip-remote, 1,000 operations at an RTT of 130 ms", distant, 1.0, "× (2 RTT + 20 ms)");
    Ok(())
}

fn shown(ns: f64) -> String {
    if ns < 1e6 { format!("{ns:.0} ns") } else { format!("{:.0} ms", ns / 1e6) }
}
