//! `rocworker detect` on a machine of 8 cards with 8 partitions each.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use layout::Nodes;
use serde_json::Value;

use super::report::{Outcome, Report};
use super::timing::{Call, medians};
use crate::command::Command;
use crate::programs::Programs;

/// The p50 of a cold process that the design allows, in milliseconds.
const ALLOWED_MS: f64 = 25.0;

/// How many times as much 64 cards may cost as 8 cards do: a little over linear.
const ALLOWED_GROWTH: f64 = 8.2;

/// Adds the two rows of detect.
pub(crate) fn measure(programs: &Programs, work: &Path, report: &mut Report) -> Result<()> {
    let detect = |cards, partitions| detect(&programs.rocworker, work, cards, partitions);
    let time = |call| {
        let [p50] = medians(work, &[call], 0, || Ok(()))?;
        let milliseconds = p50.as_secs_f64() * 1e3;
        Ok(Outcome { figures: format!("{milliseconds:.2} ms"), ratio: milliseconds / ALLOWED_MS })
    };
    report.add("detect, 8 cards × 8 partitions, cold process", detect(8, 8).and_then(time), 1.0, "× 25 ms");
    // System calls, so that a quadratic detect shows whatever else the machine does.
    let growth = || {
        let [few, many] = [system_calls(&detect(8, 1)?, work)?, system_calls(&detect(64, 1)?, work)?];
        Ok(Outcome { figures: format!("{many}; of 8: {few}"), ratio: f64::from(many) / f64::from(few) })
    };
    report.add("detect, system calls of 64 cards", growth(), ALLOWED_GROWTH, "× those of 8");
    Ok(())
}

/// The call for a synthetic machine, on which it has found every GPU once: else its figures are worth nothing.
fn detect(rocworker: &Path, work: &Path, cards: u8, partitions: u8) -> Result<Call> {
    let root = work.join(format!("detect-{cards}x{partitions}"));
    layout::Machine::instinct(cards, partitions)
        .lay_out(&root, Nodes::Recorded)
        .context("laying a machine out")?;
    let call = Call::new(rocworker, &["--root", &root.display().to_string(), "detect", "--output", "json"]);
    let answer = Command::new([&call.program]).arguments(&call.arguments).read()?;
    check(&answer, usize::from(cards) * usize::from(partitions))?;
    Ok(call)
}

/// Checks that the answer has so many usable GPUs.
pub(super) fn check(answer: &str, gpus: usize) -> Result<()> {
    let answer: Value = serde_json::from_str(answer).context("reading the answer of detect")?;
    let found = answer["gpus"].as_array().context("the answer of detect has no gpus")?;
    let usable = found.iter().filter(|gpu| gpu["usable"] == Value::Bool(true)).count();
    ensure!(usable == gpus, "detect found {usable} usable GPUs where {gpus} were laid out");
    Ok(())
}

fn system_calls(call: &Call, work: &Path) -> Result<u32> {
    let log = strace(call, work, "all")?;
    let count = u32::try_from(calls(&log).count())?;
    ensure!(count > 0, "strace logged no system call of {}", call.program.display());
    Ok(count)
}

/// strace's log of a call.
pub(super) fn strace(call: &Call, work: &Path, trace: &str) -> Result<String> {
    let log: PathBuf = work.join("strace.log");
    Command::new(["strace", "-f", "-qq", "-e", "signal=none", "-e", &format!("trace={trace}"), "-o"])
        .arguments([&log, &call.program])
        .arguments(&call.arguments)
        .read()?;
    fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))
}

/// The calls in a log of strace, without the process in front: one that another thread interrupted takes two lines.
pub(super) fn calls(log: &str) -> impl Iterator<Item = &str> {
    let calls = log.lines().map(|line| line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' '));
    calls.filter(|call| !call.is_empty() && !call.starts_with(['<', '+', '-']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_on_two_lines_counts_once_and_what_is_no_call_does_not() {
        let log = "\
12 execve(\"/bin/true\", [\"true\"], 0x7ffc /* 20 vars */) = 0
12 read(3,  <unfinished ...>
13 openat(AT_FDCWD, \"/sys\", O_RDONLY) = 4
12 <... read resumed>\"\", 16)            = 0
12 --- SIGCHLD {si_signo=SIGCHLD} ---
12 +++ exited with 0 +++
";
        assert_eq!(calls(log).count(), 3);
    }

    #[test]
    fn a_detect_that_misses_a_gpu_gives_no_figure() {
        let answer = r#"{"gpus": [{"usable": true}, {"usable": false}]}"#;
        assert!(check(answer, 1).is_ok());
        for (answer, gpus) in [(answer, 2), ("{}", 0), ("", 0)] {
            assert!(check(answer, gpus).is_err(), "{answer}");
        }
    }
}
