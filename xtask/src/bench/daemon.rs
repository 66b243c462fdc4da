//! `rocworker serve`: how large it is, what it costs while nothing happens, and how long it takes to publish a change of what it
//! watches. The machine has 8 cards with 8 partitions each. What the kernel's own events take is measured in QEMU:
//! tests/qemu/tests/it/real_daemon.rs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::command::Command;

use super::apply::lay_out;
use super::report::{Outcome, Report};

/// The design's budgets in kilobytes, milliseconds, and per cent of a core.
const RESIDENT_KIB: u64 = 16 << 10;
const ALLOWED_MS: f64 = 1e3;
const IDLE_PERCENT: f64 = 0.1;

/// Several of its looks, which are ten seconds apart.
const IDLE: Duration = Duration::from_secs(60);

/// A time limit longer than anything here takes.
const LONGEST: Duration = Duration::from_secs(20);

/// Adds the rows.
pub(crate) fn measure(rocworker: &Path, work: &Path, runs: usize, report: &mut Report) {
    println!("measuring: daemon");
    let [resident, times, idle] = match serve(rocworker, work, runs.clamp(10, 50)) {
        Ok(measured) => measured.outcomes().map(Ok),
        Err(error) => [(); 3].map(|()| Err(anyhow!("{error:#}"))),
    };
    report.add("daemon, resident at most, 8 cards × 8 partitions", resident, 1.0, "× 16 MiB");
    report.add("daemon, from a changed configuration to amd.json, p99", times, 1.0, "× 1 s");
    report.add("daemon, while nothing happens", idle, IDLE_PERCENT, "% of a core");
}

struct Measured {
    /// VmHWM of proc_pid_status(5).
    resident_kib: u64,
    times: Vec<Duration>,
    /// The use of a core in per cent.
    idle: f64,
}

impl Measured {
    fn outcomes(mut self) -> [Outcome; 3] {
        self.times.sort_unstable();
        let ms = |at: usize| self.times.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
        let count = self.times.len();
        // With fewer than a hundred measurements this is the longest.
        let p99 = ms((count * 99).div_ceil(100).saturating_sub(1));
        [
            Outcome {
                figures: format!("{} KiB", self.resident_kib),
                ratio: f64::from(u32::try_from(self.resident_kib).unwrap_or(u32::MAX))
                    / f64::from(u32::try_from(RESIDENT_KIB).unwrap_or(u32::MAX)),
            },
            Outcome {
                figures: format!("{p99:.0} ms, p50 {:.0} ms of {count}", ms(count / 2)),
                ratio: p99 / ALLOWED_MS,
            },
            Outcome {
                figures: format!("{:.0} ms in {IDLE:?}", self.idle * IDLE.as_secs_f64() * 10.0),
                ratio: self.idle,
            },
        ]
    }
}

/// The running daemon, which ends when this is dropped.
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
    // A backtrace for each error, as a developer asks for it, costs the daemon memory and time.
    daemon.env_remove("RUST_BACKTRACE");
    daemon.args(["--root", &shown, "serve"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let daemon = Daemon(daemon.spawn().with_context(|| format!("starting {}", rocworker.display()))?);
    until("it serves", || Ok(root.join("run/rocworker/daemon.sock").exists()))?;
    let mut times = Vec::new();
    // Two configurations by turns, with and without names by index.
    for names in ["[pci]", "[index, pci]"].into_iter().cycle().take(runs) {
        times.push(come_through(&root, names)?);
    }
    let before = processor_time(daemon.0.id())?;
    thread::sleep(IDLE);
    let idle = (processor_time(daemon.0.id())? - before).as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    Ok(Measured { resident_kib: resident(daemon.0.id())?, times, idle })
}

/// The processor time of the process's threads: the first number in each one's schedstat
/// (Documentation/scheduler/sched-stats.rst), in nanoseconds.
fn processor_time(pid: u32) -> Result<Duration> {
    let threads = PathBuf::from(format!("/proc/{pid}/task"));
    let mut nanoseconds = 0;
    for thread in fs::read_dir(&threads).with_context(|| format!("listing {}", threads.display()))? {
        let path = thread.with_context(|| format!("listing {}", threads.display()))?.path().join("schedstat");
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let first = text.split_whitespace().next().and_then(|it| it.parse::<u64>().ok());
        nanoseconds += first.with_context(|| format!("{} says {text:?}", path.display()))?;
    }
    Ok(Duration::from_nanos(nanoseconds))
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

fn resident(pid: u32) -> Result<u64> {
    let path = PathBuf::from(format!("/proc/{pid}/status"));
    let status = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    match line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()) {
        Some(kib) => Ok(kib),
        None => bail!("{} names no VmHWM", path.display()),
    }
}
