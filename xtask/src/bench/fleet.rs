//! Measures `rocworker --host` on a machine that it has read before, beside ssh that runs that program there.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use layout::Nodes;
use serde_json::Value;
use support::machines::Fleet;
use support::real;

use super::report::{Outcome, Report};
use super::timing::median;

const CARDS: u8 = 8;
/// An odd number, so that the median is one of them.
const ROUNDS: usize = 21;
/// The design's budget, as a multiple of bare ssh.
const ALLOWED: f64 = 1.3;

/// Adds the row.
pub(crate) fn measure(rocworker: &Path, report: &mut Report) {
    println!("measuring: fleet");
    report.add("--host, second contact, detect of 8 cards", time(rocworker), ALLOWED, "× bare ssh");
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
    let bare = "ssh -T -o BatchMode=yes gpu1 /root/rocworker -o json detect > /root/answer 2> /root/said";
    let read = "/root/rocworker --host gpu1 -o json detect > /root/answer 2> /root/said";
    for script in [bare, read] {
        check(&fleet, script)?;
    }
    let (mut bares, mut reads) = (Vec::new(), Vec::new());
    // Both run in turns, so that other work of the machine affects both.
    for _ in 0..ROUNDS {
        bares.push(timed(&fleet, bare)?);
        reads.push(timed(&fleet, read)?);
    }
    let (bare, read) = (median(&mut bares).as_secs_f64(), median(&mut reads).as_secs_f64());
    Ok(Outcome {
        figures: format!("{:.0} ms, bare ssh {:.0} ms", read * 1e3, bare * 1e3),
        ratio: read / bare,
    })
}

fn timed(fleet: &Fleet, script: &str) -> Result<Duration> {
    let mut command = fleet.command(&["sh", "-c", script]);
    command.stdin(Stdio::null());
    let began = Instant::now();
    let output = command.output().context("starting nsenter")?;
    let took = began.elapsed();
    ensure!(
        output.status.success(),
        "{script}: {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(took)
}

/// Checks that the machine was read: the figure of a machine that gives up early is worth nothing.
fn check(fleet: &Fleet, script: &str) -> Result<()> {
    let ended = timed(fleet, script);
    let read = |path: &str| std::fs::read_to_string(fleet.path(path)).unwrap_or_default();
    let said = read("root/said");
    ended.with_context(|| said.lines().last().unwrap_or("it said nothing").to_owned())?;
    let answer: Value = serde_json::from_str(&read("root/answer")).context("reading the answer")?;
    // With several machines the answer is a list of their answers.
    let answer = answer.pointer("/hosts/0/answer").unwrap_or(&answer);
    let gpus = answer["gpus"].as_array().context("the answer has no gpus")?;
    let usable = gpus.iter().filter(|gpu| gpu["usable"] == Value::Bool(true)).count();
    ensure!(usable == usize::from(CARDS), "{script}: {usable} usable GPUs where {CARDS} were laid out");
    Ok(())
}
