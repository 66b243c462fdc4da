//! `rocworker serve`: how large it is, and what it costs while nothing happens. The machine has 8 cards with 8 partitions
//! each. What the kernel's events take is measured in QEMU: tests/qemu/tests/it/real_daemon.rs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::apply::lay_out;
use super::report::{Outcome, Report};
use super::{Served, memory_kib};
use crate::command::Command;
use crate::programs::Programs;

/// The design's budgets in KiB, and per cent of a core.
const RESIDENT_KIB: f64 = 16.0 * 1024.0;
const IDLE_PERCENT: f64 = 0.1;

/// Several of its looks, which are ten seconds apart.
const IDLE: Duration = Duration::from_secs(60);

/// Adds the rows.
pub(crate) fn measure(programs: &Programs, work: &Path, report: &mut Report) -> Result<()> {
    let [resident, idle] = match serve(&programs.rocworker, work) {
        Ok(measured) => measured.map(Ok),
        Err(error) => [(); 2].map(|()| Err(anyhow!("{error:#}"))),
    };
    report.add("daemon, resident at most, 8 cards × 8 partitions", resident, 1.0, "× 16 MiB");
    report.add("daemon, while nothing happens", idle, IDLE_PERCENT, "% of a core");
    Ok(())
}

fn serve(rocworker: &Path, work: &Path) -> Result<[Outcome; 2]> {
    let root = lay_out(work, "daemon-8x8")?;
    let shown = root.display().to_string();
    Command::new([rocworker]).arguments(["--root", &shown, "apply"]).read()?;
    let mut daemon = std::process::Command::new(rocworker);
    // A backtrace for each error, as a developer asks for it, costs the daemon memory and time.
    daemon.env_remove("RUST_BACKTRACE");
    daemon.args(["--root", &shown, "serve"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let daemon = Served(daemon.spawn().with_context(|| format!("starting {}", rocworker.display()))?);
    // A changed configuration, so that the daemon has done what costs it most memory. Whole at once: of a file that is
    // written in its place the daemon may read the first half, and follow that.
    let (config, spec) = (root.join("etc/rocworker/config.yaml"), root.join("etc/cdi/amd.json"));
    until("it serves", || Ok(root.join("run/rocworker/daemon.sock").exists()))?;
    let before = fs::read(&spec).context("reading the CDI spec")?;
    fs::write(config.with_extension("new"), "cdi: {names: [pci]}\n")?;
    fs::rename(config.with_extension("new"), config)?;
    until("amd.json is by the new configuration", || Ok(fs::read(&spec)? != before))?;
    let pid = daemon.0.id();
    let before = processor_time(pid)?;
    thread::sleep(IDLE);
    let idle = (processor_time(pid)? - before).as_secs_f64();
    let resident = memory_kib(pid, "VmHWM")?;
    Ok([
        Outcome { figures: format!("{resident} KiB"), ratio: resident / RESIDENT_KIB },
        Outcome {
            figures: format!("{:.0} ms in {IDLE:?}", idle * 1e3),
            ratio: idle / IDLE.as_secs_f64() * 100.0,
        },
    ])
}

/// The processor time of the process's threads: the first number in each one's schedstat
/// (Documentation/scheduler/sched-stats.rst), in nanoseconds.
fn processor_time(pid: u32) -> Result<Duration> {
    let threads = PathBuf::from(format!("/proc/{pid}/task"));
    let mut nanoseconds = 0;
    for thread in fs::read_dir(&threads).with_context(|| format!("listing {}", threads.display()))? {
        let path = thread?.path().join("schedstat");
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let first = text.split_whitespace().next().and_then(|it| it.parse::<u64>().ok());
        nanoseconds += first.with_context(|| format!("{} says {text:?}", path.display()))?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

fn until(what: &str, is_so: impl Fn() -> Result<bool>) -> Result<()> {
    let began = Instant::now();
    while !is_so()? {
        ensure!(began.elapsed() < Duration::from_secs(20), "not so after 20 s that {what}");
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
