//! The daemon on a real kernel: events of modules that are loaded and unloaded, of nodes that come and go, and more of
//! them than the kernel keeps.
//!
//! No machine of these tests has a GPU of AMD's. The real amdgpu makes the real /dev/kfd, vgem's render node stands for the
//! card's, and /sys is a laid-out one in which the two belong to a card: what is heard, and what is found in /dev, is the
//! kernel's.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use qemu_machine::boot::boot_counted;
use qemu_machine::kernel::Kernel;
use qemu_machine::libraries::archive_of_rocworker;
use rocworker::daemon::report::Report;
use rocworker::daemon::scheduler::Cause;
use rocworker::daemon::socket::{Answer, ask};
use root::Root;
use serde_json::{Value, json};
use support::real;

use crate::machine::laid;

const INIT: &str = concat!(
    include_str!("../../guest/first.sh"),
    include_str!("../../guest/card.sh"),
    include_str!("../../guest/steps.sh"),
    include_str!("../../guest/daemon.sh")
);
const SPEC: &str = "/etc/cdi/amd.json";

/// The number of timed loads, none of which may take longer than a second of the machine's clock. QEMU in software needs
/// seconds of the host's time for each.
const LOADS: usize = 40;
const BURST: u32 = 10_000;

/// How long the daemon waits after each event; [`MOST`] is how long it waits at most while events go on
/// (src/daemon/scheduler.rs).
const QUIET: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_millis(400);

/// A machine in software is slow; what is measured has its own bound.
const LONGEST: Duration = Duration::from_secs(20);

/// Not a test: the program that runs in the machine.
#[test]
fn child() {
    let Ok(pid) = fs::read_to_string("/run/pid") else { return };
    let pid = Pid::from_raw(pid.trim().parse().unwrap());
    let first = until("it has looked", |report| report.counts.looks > 0);
    let kfd_came = load_amdgpu();
    let (mut came, mut went) = (Vec::new(), Vec::new());
    for _ in 0..LOADS {
        came.push(timed("insmod", "/modules/vgem.ko", true));
        went.push(timed("rmmod", "vgem", false));
    }
    let heard = report();
    run("insmod", "/modules/vgem.ko");
    eventually("the node is offered", || Path::new(SPEC).exists());
    let quiet = settled();
    let bursts: Vec<Value> = [false, true].into_iter().map(|stopped| burst(pid, stopped)).collect();
    let last = settled();
    let is_gpu = |path: &Path| path.starts_with("/dev/dri") || path == Path::new("/dev/kfd");
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let open =
        fds.filter_map(|fd| fs::read_link(fd.unwrap().path()).ok()).filter(|path| is_gpu(path)).count();
    let kfd_went = timed("rmmod", "amdgpu", false);
    kill(pid, Signal::SIGTERM).unwrap();
    let began = Instant::now();
    eventually("it has ended", || kill(pid, None).is_err() || state(pid) == "Z");
    let came = json!({
        "first": first, "heard": heard, "quiet": quiet, "bursts": bursts, "last": last, "open": open,
        "kfd_came": kfd_came, "kfd_went_ms": kfd_went,
        "came_ms": came, "went_ms": went, "ended_ms": began.elapsed().as_millis(),
    });
    fs::write("/run/came", format!("\n{came}\n")).unwrap();
}

/// Loads the driver under the daemon, and gives KFD's number in the laid-out /sys, which the kernel gives out as it likes.
/// Answers with the report of the look that heard of it.
fn load_amdgpu() -> Report {
    let before = report();
    for module in fs::read_to_string("/modules/amdgpu").unwrap().split_whitespace() {
        if !Path::new("/realsys/module").join(module.replace('-', "_")).is_dir() {
            run("insmod", &format!("/modules/{module}.ko"));
        }
    }
    let devices = fs::read_to_string("/proc/devices").unwrap();
    let major = devices.lines().find_map(|line| line.trim().strip_suffix(" kfd")).unwrap();
    fs::write("/sys/devices/virtual/kfd/kfd/dev", format!("{major}:0\n")).unwrap();
    fs::rename("/sys/dev/char/241:0", format!("/sys/dev/char/{major}:0")).unwrap();
    until("it has heard of the driver", |report| {
        report.counts.kernel > before.counts.kernel && report.counts.looks > before.counts.looks
    })
}

/// The milliseconds from the load or unload of a module until the spec exists, or no longer exists.
fn timed(tool: &str, module: &str, is_there: bool) -> u128 {
    let began = Instant::now();
    run(tool, module);
    eventually("engines are told", || Path::new(SPEC).exists() == is_there);
    began.elapsed().as_millis()
}

/// Events as fast as they can be made; `stopped`: while the daemon can read none, so that the kernel has to drop some.
fn burst(pid: Pid, stopped: bool) -> Value {
    let (before, memory) = (report(), own_memory(pid));
    if stopped {
        kill(pid, Signal::SIGSTOP).unwrap();
    }
    let began = Instant::now();
    for _ in 0..BURST {
        fs::write("/realsys/class/drm/card0/uevent", "change").unwrap();
    }
    let made = began.elapsed();
    if stopped {
        kill(pid, Signal::SIGCONT).unwrap();
    }
    until("it has heard of it", |report| report.counts.looks > before.counts.looks);
    let after = settled();
    let took = began.elapsed();
    json!({
        "stopped": stopped, "made_ms": made.as_millis(), "took_ms": took.as_millis(),
        "heard": after.counts.kernel - before.counts.kernel, "lost": after.counts.lost - before.counts.lost,
        "looks": after.counts.looks - before.counts.looks, "causes": after.last.unwrap().causes,
        "memory_kib": [memory, own_memory(pid)],
    })
}

/// Once nothing more is heard and no look goes on for three times as long as it waits.
fn settled() -> Report {
    let mut since = Instant::now();
    let mut last = report();
    while since.elapsed() < 3 * QUIET {
        std::thread::sleep(Duration::from_millis(5));
        let now = report();
        if (now.counts, &now.last) != (last.counts, &last.last) {
            (since, last) = (Instant::now(), now);
        }
    }
    last
}

fn run(tool: &str, module: &str) {
    let output = Command::new(tool).arg(module).output().unwrap();
    assert!(output.status.success(), "{tool} {module}: {}", String::from_utf8_lossy(&output.stderr));
}

fn report() -> Report {
    match ask(&Root::open(Path::new("/")).unwrap()) {
        Some(Answer::Report(report)) => *report,
        other => panic!("{other:?}"),
    }
}

fn until(what: &str, is_so: impl Fn(&Report) -> bool) -> Report {
    let mut last = None;
    eventually(what, || {
        let answer = ask(&Root::open(Path::new("/")).unwrap());
        last = if let Some(Answer::Report(report)) = answer { Some(*report) } else { None };
        last.as_ref().is_some_and(&is_so)
    });
    last.unwrap()
}

#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(
            began.elapsed() < LONGEST,
            "not so that {what}: {}",
            fs::read_to_string("/tmp/daemon").unwrap()
        );
        std::thread::sleep(Duration::from_millis(4));
    }
}

fn status(pid: Pid, key: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    line.split_whitespace().next().unwrap_or_default().to_owned()
}

fn state(pid: Pid) -> String {
    status(pid, "State:")
}

/// Kilobytes of the process's own memory.
fn own_memory(pid: Pid) -> u64 {
    status(pid, "RssAnon:").parse().unwrap()
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_events_of_a_real_kernel_reach_engines_within_a_second_and_a_burst_is_a_few_looks() {
    let variables = ["ROCWORKER_KERNELS", "ROCWORKER_PROGRAM", "ROCWORKER_WRAPPER"];
    let programs = ["qemu-system-x86_64", "setpriv", "timeout", "busybox", "ldd", "xz"];
    let Some([kernels, rocworker, wrapper]) = real::require_made(variables, &programs) else { return };
    let place = tempfile::tempdir().unwrap();
    let kernel = Kernel::unpacked_in(&kernels.join("bookworm"));
    let booted = boot_counted(kernel.image(), &archive(&kernel, &rocworker, &wrapper), place.path());
    let answers = &booted.answers;
    let last = answers.said("measure").lines().last().unwrap_or_default();
    let measured: Value = serde_json::from_str(last).unwrap_or_else(|_| {
        panic!("{:#?}\n{:#?}\n{:#?}", answers.of("start"), answers.of("measure"), answers.of("daemon"))
    });
    eprintln!("Linux {} ({}): {:.1} s", kernel.release(), booted.accelerator, booted.took.as_secs_f64());
    hold(&measured);
}

fn hold(measured: &Value) {
    for key in ["came_ms", "went_ms"] {
        let mut times: Vec<u64> =
            measured[key].as_array().unwrap().iter().map(|it| it.as_u64().unwrap()).collect();
        times.sort_unstable();
        assert_eq!(times.len(), LOADS);
        let (half, longest) = (times[LOADS / 2 - 1], times[LOADS - 1]);
        eprintln!("{key}: p50 {half}, longest {longest}");
        assert!(longest <= 1000, "{key}: {longest} ms");
    }
    let heard = &measured["heard"]["counts"];
    assert!(measured["first"]["sources"]["kernel"].is_null(), "{measured:#}");
    // Each load and unload causes the module's own event, and those of its devices.
    assert!(heard["kernel"].as_u64() >= Some(4 * u64::try_from(LOADS).unwrap()), "{heard}");
    for burst in measured["bursts"].as_array().unwrap() {
        eprintln!("burst of {BURST}: {burst}");
        let number = |key: &str| burst[key].as_u64().unwrap();
        let most = number("made_ms").div_ceil(u64::try_from(MOST.as_millis()).unwrap()) + 1;
        assert!(number("looks") <= most, "at most {most} looks: {burst:#}");
        let memory: Vec<u64> = serde_json::from_value(burst["memory_kib"].clone()).unwrap();
        assert!(memory[1] <= memory[0] + 256, "{burst:#}");
        if burst["stopped"] == true {
            let causes: BTreeSet<Cause> = serde_json::from_value(burst["causes"].clone()).unwrap();
            assert!(number("lost") > 0 && causes.contains(&Cause::Lost), "{burst:#}");
        } else {
            assert!(number("heard") + number("lost") > 0, "{burst:#}");
        }
    }
    // The driver's own module, and the device that it makes.
    let before = measured["first"]["counts"]["kernel"].as_u64();
    assert!(
        measured["kfd_came"]["counts"]["kernel"].as_u64() >= before.map(|count| count + 2),
        "{measured:#}"
    );
    eprintln!("amdgpu is unloaded, and the spec is gone: {} ms", measured["kfd_went_ms"]);
    assert_eq!(measured["open"], 0, "{measured:#}");
    let ended = measured["ended_ms"].as_u64().unwrap();
    eprintln!("ended {ended} ms after SIGTERM");
    assert!(ended < 1000, "{ended}");
}

fn archive(kernel: &Kernel, rocworker: &Path, wrapper: &Path) -> Vec<u8> {
    let programs = [("rocworker", rocworker), ("runc-amd-wrapper", wrapper)];
    let mut archive = archive_of_rocworker(INIT, kernel, &["amdgpu", "vgem"], programs);
    laid::into(&mut archive);
    archive.finish()
}
