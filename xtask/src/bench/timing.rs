//! The time from starting a program to its end, in interleaved series.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Runs that are not counted: they fill the page cache.
const WARM_UP: usize = 20;

/// Starts programs with one environment and their output in one file.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    said: PathBuf,
    output: File,
}

/// A program and its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
}

impl Stopwatch {
    /// Sends the programs' output to a file in `work`: a terminal would cost time, and errors are needed.
    pub(crate) fn new(work: &Path) -> Result<Self> {
        let said = work.join("said");
        let output = File::create(&said).with_context(|| format!("making {}", said.display()))?;
        Ok(Self { said, output })
    }

    /// Runs a call once. The standard library starts it with posix_spawn(3), which copies no page tables,
    /// so the size of this process is not in the figure.
    pub(crate) fn time(&self, call: &Call, expected: i32) -> Result<Duration> {
        let output = || self.output.try_clone().context("duplicating the output file");
        let mut command = Command::new(&call.program);
        command.args(&call.arguments).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.stdin(Stdio::inherit()).stdout(output()?).stderr(output()?);
        let started = Instant::now();
        let status = command.spawn().and_then(|mut child| child.wait());
        let took = started.elapsed();
        let status = status.with_context(|| format!("starting {}", call.program.display()))?;
        if status.code() != Some(expected) {
            let said = std::fs::read_to_string(&self.said).unwrap_or_default();
            let last = said.lines().last().unwrap_or("it printed nothing");
            bail!("{} ended with {status} where {expected} was expected: {last}", call.program.display());
        }
        Ok(took)
    }

    /// The p50 of each call, taken in turns so that whatever else the machine does falls on all of them.
    /// `before` runs before each call, outside the timed part.
    pub(crate) fn medians<const N: usize>(
        &self,
        calls: &[Call; N],
        expected: i32,
        runs: usize,
        mut before: impl FnMut() -> Result<()>,
    ) -> Result<[Duration; N]> {
        let mut series: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::with_capacity(runs));
        for round in 0..runs + WARM_UP {
            for which in (0..N).map(|turn| (round + turn) % N) {
                before()?;
                let took = self.time(&calls[which], expected)?;
                if round >= WARM_UP {
                    series[which].push(took);
                }
            }
        }
        Ok(series.map(|mut durations| median(&mut durations)))
    }
}

pub(super) fn median(durations: &mut [Duration]) -> Duration {
    durations.sort_unstable();
    durations[durations.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(program: &str, arguments: &[&str]) -> Call {
        Call { program: program.into(), arguments: arguments.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn the_median_is_the_one_in_the_middle_whatever_the_order_and_the_outliers() {
        let mut durations = [9, 1, 1_000_000, 3, 2].map(Duration::from_micros);
        assert_eq!(median(&mut durations), Duration::from_micros(3));
    }

    #[test]
    fn a_call_that_ends_otherwise_than_expected_is_no_figure() {
        let work = tempfile::tempdir().unwrap();
        let stopwatch = Stopwatch::new(work.path()).unwrap();
        assert!(stopwatch.time(&call("/bin/true", &[]), 0).is_ok());
        let error = stopwatch.time(&call("/bin/ls", &["/not/there"]), 42).unwrap_err().to_string();
        assert!(error.contains("where 42 was expected") && error.contains("/not/there"), "{error}");
    }

    #[test]
    fn every_run_is_preceded_by_its_restoration() {
        let work = tempfile::tempdir().unwrap();
        let stopwatch = Stopwatch::new(work.path()).unwrap();
        let mut restored = 0;
        let calls = [call("/bin/true", &[]), call("/bin/true", &[])];
        let before = || {
            restored += 1;
            Ok(())
        };
        stopwatch.medians(&calls, 0, 3, before).unwrap();
        assert_eq!(restored, 2 * (3 + WARM_UP));
    }
}
