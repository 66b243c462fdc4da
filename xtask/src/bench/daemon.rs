//! `rocworker serve`: how large it is, and how long it takes to publish a change of what it watches. The machine has 8
//! cards with 8 partitions each. What the kernel's own events take is measured in QEMU: tests/qemu/tests/real_daemon.rs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::command::Command;

use super::apply::lay_out;
use super::report::{Outcome, Report, Row};

/// What the design allows, in kilobytes and milliseconds.
const RESIDENT_KIB: u64 = 16 << 10;
const ALLOWED_MS: f64 = 1e3;

/// Longer than anything here takes.
const LONGEST: Duration = Duration::from_secs(20);

/// Adds the rows; what cannot be measured is a row with its reason.
pub(crate) fn measure(rocworker: &Path, work: &Path, runs: usize, report: &mut Report) {
    println!("measuring: daemon");
    let measured = serve(rocworker, work, runs.clamp(10, 50));
    let left_out = |error: &anyhow::Error| Outcome::LeftOut { reason: format!("left out: {error:#}") };
    let rows = match measured {
        Ok(Measured { resident_kib, times }) => [
            Outcome::Measured {
                figures: format!("{resident_kib} KiB"),
                ratio: f64::from(u32::try_from(resident_kib).unwrap_or(u32::MAX))
                    / f64::from(u32::try_from(RESIDENT_KIB).unwrap_or(u32::MAX)),
            },
            of_times(times),
        ],
        Err(error) => [left_out(&error), left_out(&error)],
    };
    let names = [
        ("daemon, resident at most, 8 cards × 8 partitions", "× 16 MiB"),
        ("daemon, from a changed configuration to amd.json, longest", "× 1 s"),
    ];
    for ((what, unit), outcome) in names.into_iter().zip(rows) {
        report.add(Row { what: what.to_owned(), outcome, limit: 1.0, unit, enforced: true });
    }
}

fn of_times(mut times: Vec<Duration>) -> Outcome {
    times.sort_unstable();
    let ms = |at: usize| times.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
    let longest = ms(times.len().saturating_sub(1));
    let figures = format!("{longest:.0} ms, p50 {:.0} ms of {}", ms(times.len() / 2), times.len());
    Outcome::Measured { figures, ratio: longest / ALLOWED_MS }
}

struct Measured {
    /// VmHWM of proc_pid_status(5).
    resident_kib: u64,
    times: Vec<Duration>,
}

/// Ends with what measures it.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn serve(rocworker: &Path, work: &Path, runs: usize) -> Result<Measured> {
    let root = lay_out(work, "daemon-8x8")?;
    let shown = root.display().to_string();
    Command::new([rocworker]).arguments(["--root", &shown, "apply"]).read()?;
    let mut daemon = std::process::Command::new(rocworker);
    daemon.args(["--root", &shown, "serve"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let daemon = Daemon(daemon.spawn().with_context(|| format!("starting {}", rocworker.display()))?);
    until("it serves", || Ok(root.join("run/rocworker/daemon.sock").exists()))?;
    let mut times = Vec::new();
    // What a person may configure: by turns with and without names by index.
    for names in ["[pci]", "[index, pci]"].into_iter().cycle().take(runs) {
        times.push(come_through(&root, names)?);
    }
    Ok(Measured { resident_kib: resident(daemon.0.id())?, times })
}

fn come_through(root: &Path, names: &str) -> Result<Duration> {
    let spec = root.join("etc/cdi/amd.json");
    let before = fs::read(&spec).with_context(|| format!("reading {}", spec.display()))?;
    let config = root.join("etc/rocworker/config.yaml");
    // Whole at once: of a file that is written in its place the daemon may read the first half, and follow that.
    let new = config.with_extension("new");
    fs::write(&new, format!("cdi: {{names: {names}}}\n"))
        .and_then(|()| fs::rename(&new, &config))
        .with_context(|| format!("writing {}", config.display()))?;
    until("amd.json is by the new configuration", || Ok(fs::read(&spec)? != before))
}

fn until(what: &str, is_so: impl Fn() -> Result<bool>) -> Result<Duration> {
    let began = Instant::now();
    while !is_so()? {
        ensure!(began.elapsed() < LONGEST, "not so after {LONGEST:?} that {what}");
        thread::sleep(Duration::from_millis(1));
    }
    Ok(began.elapsed())
}

pub(super) fn resident(pid: u32) -> Result<u64> {
    let path = PathBuf::from(format!("/proc/{pid}/status"));
    let status = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    match line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()) {
        Some(kib) => Ok(kib),
        None => bail!("{} names no VmHWM", path.display()),
    }
}
