//! `rocworker detect` on a machine of 8 cards with 8 partitions each.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use layout::Nodes;
use serde_json::Value;

use crate::command::Command;

use super::report::{Outcome, Report};
use super::timing::{Call, Stopwatch};

/// The p50 of a cold process that the design allows, in milliseconds.
const ALLOWED_MS: f64 = 25.0;

/// How many times as many system calls 64 cards may cost as 8 cards do: a little over linear.
const ALLOWED_GROWTH: f64 = 8.2;

/// Adds the two rows of detect.
pub(crate) fn measure(rocworker: &Path, work: &Path, runs: usize, report: &mut Report) -> Result<()> {
    println!("measuring: detect");
    let partitioned = lay_out(&work.join("detect-8x8"), 8, 8)?;
    let outcome = time(rocworker, &partitioned, work, runs);
    report.add("detect, 8 cards × 8 partitions, cold process", outcome, 1.0, "× 25 ms");
    let [few, many] = [8, 64].map(|cards| lay_out(&work.join(format!("detect-{cards}")), cards, 1));
    let outcome = growth(rocworker, &few?, &many?, work);
    report.add("detect, system calls of 64 cards", outcome, ALLOWED_GROWTH, "× those of 8");
    Ok(())
}

/// A synthetic machine beneath a directory, its device nodes recorded: this needs no root.
fn lay_out(folder: &Path, cards: u8, partitions: u8) -> Result<Laid> {
    layout::Machine::instinct(cards, partitions)
        .lay_out(folder, Nodes::Recorded)
        .with_context(|| format!("laying out a machine beneath {}", folder.display()))?;
    Ok(Laid { folder: folder.to_owned(), gpus: usize::from(cards) * usize::from(partitions) })
}

struct Laid {
    folder: PathBuf,
    gpus: usize,
}

impl Laid {
    fn call(&self, rocworker: &Path) -> Call {
        let root = self.folder.display().to_string();
        let arguments = ["--root", &root, "detect", "--output", "json"].map(str::to_owned).to_vec();
        Call { program: rocworker.to_owned(), arguments }
    }

    /// Checks that detect sees the laid-out machine: else its figures are worth nothing.
    fn check(&self, rocworker: &Path) -> Result<()> {
        let call = self.call(rocworker);
        let answer = Command::new([&call.program]).arguments(&call.arguments).read()?;
        let answer: Value = serde_json::from_str(&answer).context("reading the answer of detect")?;
        let gpus = answer["gpus"].as_array().context("the answer of detect has no gpus")?;
        let usable = gpus.iter().filter(|gpu| gpu["usable"] == Value::Bool(true)).count();
        if usable != self.gpus {
            bail!("detect found {usable} usable GPUs where {} were laid out", self.gpus);
        }
        Ok(())
    }
}

fn time(rocworker: &Path, machine: &Laid, work: &Path, runs: usize) -> Result<Outcome> {
    machine.check(rocworker)?;
    let [p50] = Stopwatch::new(work)?.medians(&[machine.call(rocworker)], 0, runs, || Ok(()))?;
    let milliseconds = p50.as_secs_f64() * 1e3;
    Ok(Outcome { figures: format!("{milliseconds:.2} ms"), ratio: milliseconds / ALLOWED_MS })
}

fn growth(rocworker: &Path, small: &Laid, large: &Laid, work: &Path) -> Result<Outcome> {
    small.check(rocworker)?;
    large.check(rocworker)?;
    let of_8 = system_calls(&small.call(rocworker), work)?;
    let of_64 = system_calls(&large.call(rocworker), work)?;
    Ok(Outcome { figures: format!("{of_64}; of 8: {of_8}"), ratio: f64::from(of_64) / f64::from(of_8) })
}

fn system_calls(call: &Call, work: &Path) -> Result<u32> {
    let log = work.join("strace.log");
    Command::new(["strace", "-f", "-qq", "-e", "signal=none", "-o"])
        .arguments([&log, &call.program])
        .arguments(&call.arguments)
        .read()?;
    let text = std::fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
    match count(&text) {
        0 => bail!("strace logged no system call of {}", call.program.display()),
        calls => Ok(calls),
    }
}

/// The calls in a log of strace: a call that another thread interrupted takes two lines.
fn count(log: &str) -> u32 {
    let calls = log.lines().filter(|line| {
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        !call.is_empty() && !call.starts_with(['<', '+', '-'])
    });
    u32::try_from(calls.count()).unwrap_or(u32::MAX)
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
        assert_eq!(count(log), 3);
        assert_eq!(count(""), 0);
    }

    #[test]
    fn a_detect_that_misses_a_gpu_gives_no_figure() {
        let folder = tempfile::tempdir().unwrap();
        let machine = lay_out(folder.path(), 1, 8).unwrap();
        // echo answers with its arguments, which are no JSON; true with nothing.
        for program in ["/bin/echo", "/bin/true"] {
            assert!(machine.check(Path::new(program)).is_err(), "{program}");
        }
        assert!(machine.check(Path::new("/bin/false")).unwrap_err().to_string().contains("ended with"));
    }
}
