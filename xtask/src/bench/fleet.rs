//! Measures `rocworker --host` on a machine that it has read before, beside ssh that runs that program there.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use layout::Nodes;
use support::machines::Fleet;
use support::real;

use super::detect::check;
use super::report::{Outcome, Report};
use super::timing::median;
use crate::programs::Programs;

const CARDS: u8 = 8;
/// An odd number, so that the median is one of them.
const ROUNDS: usize = 21;
/// The design's budget, as a multiple of bare ssh.
const ALLOWED: f64 = 1.3;

/// Adds the row.
pub(crate) fn measure(programs: &Programs, _work: &Path, report: &mut Report) -> Result<()> {
    report.add("--host, second contact, detect of 8 cards", time(&programs.rocworker), ALLOWED, "× bare ssh");
    Ok(())
}

fn time(rocworker: &Path) -> Result<Outcome> {
    for program in ["sshd", "ssh", "ip", "nsenter", "unshare", "busybox"] {
        ensure!(real::program(program).is_some(), "{program} is not installed");
    }
    ensure!(nix::unistd::geteuid().is_root(), "needs root");
    let files = support::detect::scratch();
    layout::Machine::instinct(CARDS, 1).lay_out(files.path(), Nodes::Real).context("laying out a machine")?;
    let fleet = Fleet::new();
    let machine = fleet.machine("gpu1", |m| m.files(files.path()));
    for program in [fleet.path("root/rocworker"), machine.path("root/rocworker")] {
        std::fs::copy(rocworker, &program).with_context(|| format!("copying to {}", program.display()))?;
    }
    let bare = ["ssh", "-T", "-o", "BatchMode=yes", "gpu1", "/root/rocworker", "-o", "json", "detect"];
    let host = ["/root/rocworker", "--host", "gpu1", "-o", "json", "detect"];
    // The first contact is not measured.
    timed(&fleet, &bare)?;
    timed(&fleet, &host)?;
    let (mut bares, mut hosts) = (Vec::new(), Vec::new());
    // Both run in turns, so that other work of the machine affects both.
    for _ in 0..ROUNDS {
        bares.push(timed(&fleet, &bare)?);
        hosts.push(timed(&fleet, &host)?);
    }
    let (bare, host) = (median(&mut bares).as_secs_f64(), median(&mut hosts).as_secs_f64());
    let figures = format!("{:.0} ms, bare ssh {:.0} ms", host * 1e3, bare * 1e3);
    Ok(Outcome { figures, ratio: host / bare })
}

/// The time of a call whose answer has every GPU: the figure of a call that gives up early is worth nothing.
fn timed(fleet: &Fleet, argv: &[&str]) -> Result<Duration> {
    let mut command = fleet.command(argv);
    command.stdin(Stdio::null());
    let began = Instant::now();
    let output = command.output().context("starting nsenter")?;
    let took = began.elapsed();
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}: {said}", argv.join(" "), output.status);
    check(&String::from_utf8_lossy(&output.stdout), usize::from(CARDS))?;
    Ok(took)
}
