//! `rocworker serve`: how large it is, what it costs while nothing happens, and how fast it follows cards that are divided
//! without an event. The machine has 8 cards with 8 partitions each. What the kernel's events take is measured in
//! QEMU: tests/qemu/tests/it/real_daemon.rs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use layout::Nodes;
use rustix::fs::{CWD, RenameFlags, renameat_with};

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

/// How long engines may read of devices that are gone after a switch of cards.
const FOLLOWED: Duration = Duration::from_secs(1);
const SWITCHES: usize = 100;

/// Adds the rows.
pub(crate) fn measure(programs: &Programs, work: &Path, report: &mut Report) -> Result<()> {
    let [resident, idle] = match serve(&programs.rocworker, work) {
        Ok(measured) => measured.map(Ok),
        Err(error) => [(); 2].map(|()| Err(anyhow!("{error:#}"))),
    };
    report.add("daemon, resident at most, 8 cards × 8 partitions", resident, 1.0, "× 16 MiB");
    report.add("daemon, while nothing happens", idle, IDLE_PERCENT, "% of a core");
    let followed = follow(&programs.rocworker, work);
    report.add("daemon, 8 cards divided without an event → amd.json, p99 of 100", followed, 1.0, "× 1 s");
    Ok(())
}

/// Divides and joins the cards: one /sys takes the other's place. The daemon watches the folder of a /sys, so that the two
/// are in a folder that it does not watch, and no event says so.
fn follow(rocworker: &Path, work: &Path) -> Result<Outcome> {
    let (root, other) = (lay_out(work, "daemon-divided")?, work.join("daemon-joined"));
    layout::Machine::instinct(8, 1).lay_out(&other, Nodes::Recorded).context("laying a machine out")?;
    let [now, joined] = [root.join("kernel/now"), root.join("kernel/joined")];
    let moved = fs::create_dir(root.join("kernel"))
        .and_then(|()| fs::rename(root.join("sys"), &now))
        .and_then(|()| fs::rename(other.join("sys"), &joined))
        .and_then(|()| std::os::unix::fs::symlink("kernel/now", root.join("sys")));
    moved.context("laying two folders /sys out")?;
    let generation = joined.join("class/kfd/kfd/topology/generation_id");
    fs::write(&generation, "3\n").with_context(|| format!("writing {}", generation.display()))?;
    let shown = root.display().to_string();
    Command::new([rocworker]).arguments(["--root", &shown, "apply"]).read()?;
    let _daemon = started(rocworker, &shown)?;
    let spec = root.join("etc/cdi/amd.json");
    until("it serves", || Ok(root.join("run/rocworker/daemon.sock").exists()))?;
    let mut took = Vec::new();
    for n in 0..SWITCHES {
        // Any phase of the half second between two reads of KFD's generation.
        thread::sleep(Duration::from_millis(u64::try_from(1000 + n * 37 % 500)?));
        let exchange = RenameFlags::EXCHANGE;
        renameat_with(CWD, &now, CWD, &joined, exchange)
            .context("exchanging two folders with renameat2(2)")?;
        let since = Instant::now();
        // Card 0's second device.
        let is_divided = || fs::read_to_string(&spec).map(|text| text.contains("/dev/dri/renderD129"));
        let is_to_be = !n.is_multiple_of(2);
        until("amd.json has the devices", || Ok(is_divided()? == is_to_be))?;
        took.push(since.elapsed());
    }
    took.sort();
    let [p50, p99] =
        [took.len() / 2, took.len() * 99 / 100 - 1].map(|at| took.get(at).copied().unwrap_or_default());
    Ok(Outcome {
        figures: format!("p50 {} ms, p99 {} ms", p50.as_millis(), p99.as_millis()),
        ratio: p99.as_secs_f64() / FOLLOWED.as_secs_f64(),
    })
}

fn started(rocworker: &Path, root: &str) -> Result<Served> {
    let mut daemon = std::process::Command::new(rocworker);
    // A backtrace for each error, as a developer asks for it, costs the daemon memory and time.
    daemon.env_remove("RUST_BACKTRACE");
    daemon.args(["--root", root, "serve"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Served(daemon.spawn().with_context(|| format!("starting {}", rocworker.display()))?))
}

fn serve(rocworker: &Path, work: &Path) -> Result<[Outcome; 2]> {
    let root = lay_out(work, "daemon-8x8")?;
    let shown = root.display().to_string();
    Command::new([rocworker]).arguments(["--root", &shown, "apply"]).read()?;
    let daemon = started(rocworker, &shown)?;
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
