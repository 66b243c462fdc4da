//! `rocworker explain -` of a log of a gigabyte: how fast it reads, and how large it gets.

use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::repository;

use super::daemon::resident;
use super::report::{Outcome, Report, Row};

/// What the design allows.
const BYTES_PER_SECOND: f64 = 200e6;
const RESIDENT_KIB: f64 = 65_536.0;

const LOG_BYTES: u64 = 1_000_000_000;

/// Between two samples there is so much of what has no message.
const ORDINARY_BYTES: usize = 1 << 20;

/// The last line of each block: known, so that a run that did not look at everything is noticed.
const LAST: &str = "kern  :err   : 2026-01-07T10:06:00,123456-06:00 amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, \
                    signaled seq=2219, emitted seq=2221\n";

/// Adds the rows; what cannot be measured is a row with its reason.
pub(crate) fn measure(rocworker: &Path, work: &Path, runs: usize, report: &mut Report) {
    println!("measuring: explain");
    let measured = log(work).and_then(|log| read(rocworker, &log, work, runs.clamp(3, 5)));
    let left_out = |error: &anyhow::Error| Outcome::LeftOut { reason: format!("left out: {error:#}") };
    let rows = match measured {
        Ok(Measured { bytes_per_second, resident_kib }) => [
            Outcome::Measured {
                figures: format!("{:.0} MB/s", bytes_per_second / 1e6),
                ratio: BYTES_PER_SECOND / bytes_per_second,
            },
            Outcome::Measured {
                figures: format!("{resident_kib} KiB"),
                ratio: f64::from(u32::try_from(resident_kib).unwrap_or(u32::MAX)) / RESIDENT_KIB,
            },
        ],
        Err(error) => [left_out(&error), left_out(&error)],
    };
    let names = [
        ("explain, a log of 1 GB", "× the time at 200 MB/s"),
        ("explain, resident at most, a log of 1 GB", "× 64 MiB"),
    ];
    for ((what, unit), outcome) in names.into_iter().zip(rows) {
        report.add(Row { what: what.to_owned(), outcome, limit: 1.0, unit, enforced: true });
    }
}

struct Log {
    path: PathBuf,
    bytes: u64,
    lines: u64,
}

struct Measured {
    bytes_per_second: f64,
    /// VmHWM of proc_pid_status(5).
    resident_kib: u64,
}

/// Lines of tests/captures again and again: what a boot says of other things, then the whole sample with its messages.
fn log(work: &Path) -> Result<Log> {
    let sample = sample()?;
    let ordinary: Vec<&str> = sample.split_inclusive('\n').filter(|line| is_ordinary(line)).collect();
    ensure!(!ordinary.is_empty(), "the sample of a kernel's log has no ordinary line");
    let mut block = String::new();
    for line in ordinary.iter().cycle() {
        if block.len() > ORDINARY_BYTES {
            break;
        }
        block.push_str(line);
    }
    block.push_str(&sample);
    block.push_str(LAST);
    let path = work.join("kernel.log");
    let mut file = BufWriter::new(File::create(&path).with_context(|| format!("making {}", path.display()))?);
    let count = LOG_BYTES.div_ceil(block.len() as u64);
    for _ in 0..count {
        file.write_all(block.as_bytes()).with_context(|| format!("writing {}", path.display()))?;
    }
    file.flush().with_context(|| format!("writing {}", path.display()))?;
    Ok(Log { path, bytes: count * block.len() as u64, lines: count * block.lines().count() as u64 })
}

fn sample() -> Result<String> {
    let path = repository::top().join("tests/captures/kernel-log-samples.tar.gz");
    let file = File::open(&path).with_context(|| format!("opening {}", path.display()))?;
    let mut archive = tar::Archive::new(GzDecoder::new(file));
    for entry in archive.entries().with_context(|| format!("reading {}", path.display()))? {
        let mut entry = entry.with_context(|| format!("reading {}", path.display()))?;
        if entry.path().is_ok_and(|name| name.ends_with("dmesg_sample.log")) {
            let mut text = String::new();
            entry.read_to_string(&mut text).with_context(|| format!("reading {}", path.display()))?;
            return Ok(text);
        }
    }
    anyhow::bail!("{} has no dmesg_sample.log", path.display())
}

fn is_ordinary(line: &str) -> bool {
    line.starts_with("kern  :info") && !line.contains("amdgpu")
}

fn read(rocworker: &Path, log: &Log, work: &Path, runs: usize) -> Result<Measured> {
    let answer = work.join("explain.json");
    let (mut times, mut resident_kib) = (Vec::new(), 0);
    for _ in 0..runs {
        let input = File::open(&log.path).with_context(|| format!("opening {}", log.path.display()))?;
        let output = File::create(&answer).with_context(|| format!("making {}", answer.display()))?;
        let began = Instant::now();
        let mut explain = std::process::Command::new(rocworker);
        explain.args(["-o", "json", "explain", "-"]).stdin(input).stdout(output).stderr(Stdio::null());
        let explain = explain.spawn().with_context(|| format!("starting {}", rocworker.display()))?;
        resident_kib = resident_kib.max(peak_until_it_ends(explain)?);
        times.push(began.elapsed());
        check(&answer, log)?;
    }
    times.sort_unstable();
    let p50 = times.get(times.len() / 2).context("nothing was timed")?;
    // A log of a gigabyte is counted exactly.
    #[allow(clippy::cast_precision_loss, reason = "2^53 is more")]
    let bytes_per_second = log.bytes as f64 / p50.as_secs_f64();
    Ok(Measured { bytes_per_second, resident_kib })
}

/// The peak only grows, and a process that has ended tells none: the last look is some milliseconds before the end.
fn peak_until_it_ends(mut explain: Child) -> Result<u64> {
    let mut peak = 0;
    loop {
        // Between its end and the wait for it the process is there, without memory.
        peak = peak.max(resident(explain.id()).unwrap_or(0));
        if let Some(status) = explain.try_wait().context("waiting for explain")? {
            ensure!(status.success(), "explain ended with {status}");
            ensure!(peak > 0, "explain ended before its memory was looked at");
            return Ok(peak);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// That the last line was found: the figure of a search that ends before is worth nothing.
fn check(answer: &Path, log: &Log) -> Result<()> {
    let text = fs::read(answer).with_context(|| format!("reading {}", answer.display()))?;
    let answer: Value = serde_json::from_slice(&text).context("reading the answer of explain")?;
    let last = answer["matches"].as_array().and_then(|matches| matches.last()).map(|found| &found["line"]);
    ensure!(last == Some(&Value::from(log.lines)), "the last match is in line {last:?} of {}", log.lines);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_a_gigabyte_of_lines_that_have_few_messages() {
        let sample = sample().unwrap();
        let ordinary = sample.lines().filter(|line| is_ordinary(line)).count();
        assert!(ordinary > 20 && ordinary < sample.lines().count());
        assert!(sample.ends_with('\n') && LAST.ends_with('\n'));
    }
}
