//! The time from starting a program to its end, in interleaved series.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// Timed runs of each program.
pub(super) const RUNS: usize = 200;
/// Runs that are not counted: they fill the page cache.
const WARM_UP: usize = 20;

/// A program and its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
}

impl Call {
    pub(crate) fn new(program: &Path, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Self { program: program.to_owned(), arguments }
    }
}

/// Runs a call once. Its output goes to a file in `work`: a terminal would cost time, and errors are needed. The standard
/// library starts it with posix_spawn(3), which copies no page tables, so the size of this process is not in the figure.
pub(crate) fn time(work: &Path, call: &Call, expected: i32) -> Result<Duration> {
    let said = work.join("said");
    let output =
        || File::options().create(true).append(true).open(&said).context("opening the output's file");
    let mut command = Command::new(&call.program);
    command.args(&call.arguments).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    // The synthetic machine has no /dev/null.
    command.stdin(Stdio::piped()).stdout(output()?).stderr(output()?);
    let started = Instant::now();
    let status = command.spawn().and_then(|mut child| child.wait());
    let took = started.elapsed();
    let status = status.with_context(|| format!("starting {}", call.program.display()))?;
    let last = || std::fs::read_to_string(&said).unwrap_or_default().lines().last().map(str::to_owned);
    ensure!(status.code() == Some(expected), "{call:?} ended with {status}: {}", last().unwrap_or_default());
    Ok(took)
}

/// The p50 of each call, taken in turns so that whatever else the machine does falls on all of them. `before` runs before
/// each call, outside the timed part.
pub(crate) fn medians<const N: usize>(
    work: &Path,
    calls: &[Call; N],
    expected: i32,
    mut before: impl FnMut() -> Result<()>,
) -> Result<[Duration; N]> {
    let mut series: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::with_capacity(RUNS));
    for round in 0..RUNS + WARM_UP {
        for which in (0..N).map(|turn| (round + turn) % N) {
            before()?;
            let took = time(work, &calls[which], expected)?;
            if round >= WARM_UP {
                series[which].push(took);
            }
        }
    }
    Ok(series.map(|mut durations| median(&mut durations)))
}

pub(super) fn median(durations: &mut [Duration]) -> Duration {
    durations.sort_unstable();
    durations[durations.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_ends_otherwise_than_expected_is_no_figure() {
        let work = tempfile::tempdir().unwrap();
        assert!(time(work.path(), &Call::new(Path::new("/bin/true"), &[]), 0).is_ok());
        let call = Call::new(Path::new("/bin/ls"), &["/not/there"]);
        let error = time(work.path(), &call, 42).unwrap_err().to_string();
        assert!(error.contains("ended with exit status: 2: ") && error.contains("No such file"), "{error}");
    }
}
