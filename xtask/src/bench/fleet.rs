//! `rocworker --hosts all detect` of 100 machines, beside 100 times `ssh HOST true` in the same run.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use layout::Nodes;
use serde_json::Value;
use support::machines::Fleet;
use support::real;

use super::report::{Outcome, Report, Row};
use super::timing::median;

const HOSTS: usize = 100;
/// As rocworker does, and so many does the bare ssh beside it.
const AT_ONCE: usize = 8;
const CARDS: u8 = 8;
/// Each takes seconds: an odd number, so that the median is one of them.
const ROUNDS: usize = 5;
/// What the design allows, as a multiple of the bare ssh.
const ALLOWED: f64 = 1.3;

/// Adds the row; what cannot be measured is a row with its reason.
pub(crate) fn measure(rocworker: &Path, report: &mut Report) {
    println!("measuring: fleet");
    let outcome =
        time(rocworker).unwrap_or_else(|error| Outcome::LeftOut { reason: format!("left out: {error:#}") });
    report.add(Row {
        what: format!("detect of {HOSTS} hosts with {CARDS} cards each, {AT_ONCE} at once"),
        outcome,
        limit: ALLOWED,
        unit: "× bare ssh",
        enforced: true,
    });
}

fn time(rocworker: &Path) -> Result<Outcome> {
    for program in ["sshd", "ssh", "ip", "nsenter", "unshare", "busybox"] {
        ensure!(real::program(program).is_some(), "{program} is not installed");
    }
    ensure!(nix::unistd::geteuid().is_root(), "needs root");
    let files = support::detect::scratch();
    layout::Machine::instinct(CARDS, 1).lay_out(files.path(), Nodes::Real).context("laying out a machine")?;
    let fleet = Fleet::new();
    let names: Vec<String> = (1..=HOSTS).map(|number| format!("gpu{number}")).collect();
    std::thread::scope(|threads| {
        for some in names.chunks(HOSTS / 4) {
            let (fleet, files) = (&fleet, &files);
            threads.spawn(move || {
                for name in some {
                    fleet.machine(name, |m| m.files(files.path()));
                }
            });
        }
    });
    fleet.put("root/names", &(names.join("\n") + "\n"));
    fleet.put("etc/rocworker/config.yaml", &inventory(&names));
    let program = fleet.path("root/rocworker");
    std::fs::copy(rocworker, &program).with_context(|| format!("copying {}", rocworker.display()))?;

    let bare = format!("xargs -P {AT_ONCE} -I NAME ssh -T -o BatchMode=yes NAME true < /root/names");
    let read = "/root/rocworker --hosts all -o json detect > /root/answer 2> /root/said";
    check(&fleet, read)?;
    let (mut bares, mut reads) = (Vec::new(), Vec::new());
    // In turns, so that whatever else the machine does falls on both.
    for _ in 0..ROUNDS {
        bares.push(timed(&fleet, &bare)?);
        reads.push(timed(&fleet, read)?);
    }
    let (bare, read) = (median(&mut bares), median(&mut reads));
    Ok(Outcome::Measured {
        figures: format!("{:.2} s, bare ssh {:.2} s", read.as_secs_f64(), bare.as_secs_f64()),
        ratio: read.as_secs_f64() / bare.as_secs_f64(),
    })
}

fn inventory(names: &[String]) -> String {
    format!("inventory:\n  groups:\n    all: [{}]\n", names.join(", "))
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

/// That every machine was read: the figure of one that gives up early is worth nothing.
fn check(fleet: &Fleet, script: &str) -> Result<()> {
    let ended = timed(fleet, script);
    let read = |path: &str| std::fs::read_to_string(fleet.path(path)).unwrap_or_default();
    let said = read("root/said");
    ended.with_context(|| said.lines().last().unwrap_or("it said nothing").to_owned())?;
    let answer: Value = serde_json::from_str(&read("root/answer")).context("reading the answer")?;
    let hosts = answer["hosts"].as_array().context("the answer has no hosts")?;
    let usable = |host: &&Value| {
        let gpus = host["answer"]["gpus"].as_array();
        gpus.is_some_and(|it| {
            it.iter().filter(|gpu| gpu["usable"] == Value::Bool(true)).count() == usize::from(CARDS)
        })
    };
    let whole = hosts.iter().filter(usable).count();
    ensure!(whole == HOSTS, "{whole} of {HOSTS} hosts answered with {CARDS} usable GPUs");
    Ok(())
}
