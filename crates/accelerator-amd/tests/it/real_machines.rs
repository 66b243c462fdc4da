//! What a C program sees through the libraries: of each captured machine, of 64 devices, and of a machine that fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use layout::{Machine, Nodes};
use support::fuse::{self, Fault, Served};
use support::said::Said;
use support::{captures, real};
use tempfile::TempDir;

use crate::c_programs::compile;

const TODAY: &str = "libaccelerator_amd.so";
const SOURCE: &str = "libaccelerator_amd_v1.so";

/// The libraries, and a C program for them.
struct Provider {
    folder: PathBuf,
    programs: TempDir,
}

impl Provider {
    fn new(folder: PathBuf) -> Self {
        let programs = tempfile::tempdir().unwrap();
        Self { folder, programs }
    }

    fn compile(&self, file: &str, options: &[&str]) -> PathBuf {
        let program = self.programs.path().join(file.replace(".c", &options.join("")));
        compile(file, &program, options);
        program
    }

    /// Runs a program on one of the libraries, which reads this machine.
    fn on(&self, machine: &Path, program: &Path, library: &str) -> Command {
        let mut command = Command::new(program);
        command.arg(self.folder.join(library)).env("ACCELERATOR_AMD_ROOT", machine);
        command.env_remove("GPU_NODE_NAME").env_remove("ACCELERATOR_AMD_TOPOLOGY");
        command
    }
}

fn laid(machine: &Machine) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
    folder
}

/// Runs what is added to it where a captured machine's sysfs is /sys, and /dev has no nodes.
fn inside(machine: &Path) -> Command {
    let script = "set -e
        mount --bind \"$1/sys\" /sys
        mount -t tmpfs none /dev
        mknod /dev/null c 1 3
        [ ! -e /dev/kfd ] && [ ! -e /dev/dri ]
        shift
        exec \"$@\"";
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", script, "sh"]).arg(machine);
    unshare
        .env_remove("ACCELERATOR_AMD_ROOT")
        .env_remove("ACCELERATOR_AMD_TOPOLOGY")
        .env_remove("GPU_NODE_NAME");
    unshare
}

/// The lines of a dump that a golden file keeps: of many devices those of the first and the last, each with its links to
/// two others.
fn abridged(dump: &str, devices: usize) -> String {
    let is_kept = |line: &&str| {
        let places: Vec<usize> =
            line.split(['[', ']']).skip(1).step_by(2).filter_map(|place| place.parse().ok()).collect();
        let is_of_device =
            ["devices[", "topology.devices[", "metrics["].iter().any(|list| line.starts_with(list));
        let is_first_or_last = |place: usize| place == 0 || place + 1 == devices;
        match places.as_slice() {
            [place, ..] if is_of_device && !is_first_or_last(*place) => false,
            [_, peer, ..] if line.starts_with("topology.") => *peer < 2,
            _ => true,
        }
    };
    dump.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}

fn device_count(dump: &str) -> usize {
    dump.lines().find_map(|line| line.strip_prefix("deviceCount: ")?.parse().ok()).unwrap()
}

#[test]
fn real_c_sees_each_captured_machine_by_both_libraries() {
    let Some([folder]) = real::require_made(["ROCWORKER_PROVIDER"], &["gcc"]) else { return };
    let provider = Provider::new(folder);
    let today = provider.compile("dump.c", &[]);
    let source = provider.compile("dump.c", &["-DV1"]);
    for (name, machine) in captures::ALL {
        let machine = laid(&machine());
        for (library, program) in [(TODAY, &today), (SOURCE, &source)] {
            let said = Said::from(provider.on(machine.path(), program, library).output().unwrap());
            let logged = said.stderr.replace(machine.path().to_str().unwrap(), "");
            let dump = said.well();
            let golden = format!("{}\n{logged}", abridged(&dump, device_count(&dump)));
            let abi = library.trim_start_matches("lib").trim_end_matches(".so");
            insta::assert_snapshot!(format!("{name} {abi}"), golden);
        }
    }
}

#[test]
fn real_c_sees_64_devices_in_both_layouts() {
    let Some([folder]) = real::require_made(["ROCWORKER_PROVIDER"], &["gcc"]) else { return };
    let provider = Provider::new(folder);
    let dump = provider.compile("dump.c", &[]);
    let machine = laid(&Machine::instinct(8, 8));
    let seen = |topology: &str| {
        let mut command = provider.on(machine.path(), &dump, TODAY);
        Said::from(command.args(["--topology", topology]).output().unwrap()).well()
    };
    let (c, go) = (seen("c"), seen("go"));
    assert_eq!(device_count(&c), 64);
    assert!(c.contains("topology.devices[63].peerCount: 63\n"), "{c}");
    let without = |dump: &str| -> Vec<String> {
        dump.lines().filter(|line| !line.contains(".bandwidthBytesPerSec: ")).map(str::to_owned).collect()
    };
    assert_eq!(without(&go), without(&c));
    let bandwidths = go.lines().filter(|line| line.contains(".bandwidthBytesPerSec: ")).count();
    assert_eq!(bandwidths, 64 * 63);
    let mut uuids: Vec<&str> =
        c.lines().filter_map(|line| line.split_once(".basic.uuid: ")).map(|it| it.1).collect();
    uuids.sort_unstable();
    uuids.dedup();
    assert_eq!(uuids.len(), 64);
}

#[test]
fn real_the_source_s_test_program_passes_on_each_machine() {
    let Some([folder]) = real::require_made(["ROCWORKER_PROVIDER"], &["gcc"]) else { return };
    let provider = Provider::new(folder);
    let program = provider.compile("test_accelerator.c", &[]);
    for machine in [Machine::instinct(8, 8), captures::phoenix(), captures::rtx4080(1, 128)] {
        let machine = laid(&machine);
        let said = Said::from(provider.on(machine.path(), &program, TODAY).output().unwrap()).well();
        assert!(said.ends_with(" skipped, 0 failed\n"), "{said}");
    }
}

#[test]
fn real_the_devices_are_equal_in_a_container_without_their_nodes() {
    let Some([folder]) = real::require_made(["ROCWORKER_PROVIDER"], &["gcc"]) else { return };
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    let provider = Provider::new(folder);
    let dump = provider.compile("dump.c", &[]);
    let machine = laid(&captures::phoenix());
    let outside = Said::from(provider.on(machine.path(), &dump, TODAY).output().unwrap()).well();
    assert_eq!(device_count(&outside), 1);
    let library = provider.folder.join(TODAY);
    let inside = Said::from(inside(machine.path()).arg(&dump).arg(library).output().unwrap()).well();
    // /proc is this machine's there: its processes, and the version of its driver.
    let devices = |dump: &str| -> Vec<String> {
        let is_of_device = |line: &&str| {
            ["devices[", "topology.", "metrics["].iter().any(|part| line.starts_with(part))
                && !line.contains("driverVersion")
        };
        dump.lines().filter(is_of_device).map(str::to_owned).collect()
    };
    assert_eq!(devices(&inside), devices(&outside));
}

/// Ends a program that a failed test leaves. Its threads may hang: nothing waits for them.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

#[test]
fn real_a_file_that_hangs_costs_its_readings_and_no_call() {
    let Some([folder]) = real::require_made(["ROCWORKER_PROVIDER"], &["gcc"]) else { return };
    if !fuse::require() {
        return;
    }
    let provider = Provider::new(folder);
    let dump = provider.compile("dump.c", &[]);
    let machine = laid(&captures::phoenix());
    let served = Served::new(machine.path());
    let card = "sys/bus/pci/devices/0000:64:00.0";
    for file in ["gpu_metrics", "mem_info_vram_used"] {
        let real = fs::canonicalize(machine.path().join(card).join(file)).unwrap();
        let path = real.strip_prefix(fs::canonicalize(machine.path()).unwrap()).unwrap().to_owned();
        served.fault(&format!("/{}", path.display()), Fault::Block);
    }
    let begun = Instant::now();
    let [printed, logged] = ["printed", "logged"].map(|name| provider.programs.path().join(name));
    let mut command = provider.on(served.path(), &dump, TODAY);
    command.stdout(fs::File::create(&printed).unwrap()).stderr(fs::File::create(&logged).unwrap());
    let mut running = Killed(command.spawn().unwrap());
    // A thread that hangs keeps its process from ending.
    let said = loop {
        let said = fs::read_to_string(&printed).unwrap();
        if said.contains("mountCount: 2\n") {
            break said;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{said}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(said.contains("AccelGetDeviceMetrics: 0\n"), "{said}");
    assert!(said.contains("devices[0].basic.uuid: gpu-0000-64-00.0\n"), "{said}");
    assert!(said.contains("metrics[0].temperatureCelsius: 25\n"), "{said}");
    let logged = fs::read_to_string(&logged).unwrap();
    assert!(logged.contains("0000:64:00.0/gpu_metrics does not answer: see journalctl -k\n"), "{logged}");
    served.mend();
    while running.0.try_wait().unwrap().is_none() {
        served.release();
        std::thread::sleep(Duration::from_millis(5));
        assert!(begun.elapsed() < Duration::from_secs(60), "the program does not end");
    }
}

#[test]
fn real_a_gpu_that_goes_while_it_is_read_is_gone_and_no_call_fails() {
    let Some([folder]) = real::require_made(["ROCWORKER_PROVIDER"], &["gcc"]) else { return };
    let provider = Provider::new(folder);
    for (library, options) in [(TODAY, &[][..]), (SOURCE, &["-DV1"])] {
        let hostile = provider.compile("hostile.c", options);
        let machine = laid(&Machine::instinct(8, 1));
        let bus = machine.path().join("sys/bus/pci/devices");
        let cards = fs::read_dir(&bus).unwrap().map(|entry| entry.unwrap().path());
        let is_amds =
            |card: &PathBuf| fs::read_to_string(card.join("vendor")).is_ok_and(|id| id.trim() == "0x1002");
        let cards: Vec<PathBuf> = cards.filter(is_amds).collect();
        let mut command = provider.on(machine.path(), &hostile, library);
        let mut running = Killed(command.args(["4", "4"]).stdout(Stdio::null()).spawn().unwrap());
        let mut rounds = 0;
        while running.0.try_wait().unwrap().is_none() {
            let card = &cards[rounds % cards.len()];
            let away = card.with_file_name("gone");
            fs::rename(card, &away).unwrap();
            std::thread::sleep(Duration::from_millis(3));
            fs::rename(&away, card).unwrap();
            rounds += 1;
        }
        assert!(running.0.wait().unwrap().success(), "{library}");
        assert!(rounds > 50, "{library}: {rounds}");
    }
}

#[test]
fn real_a_small_stack_and_children_of_a_fork_see_the_devices() {
    let Some([folder]) = real::require_made(["ROCWORKER_PROVIDER"], &["gcc"]) else { return };
    let provider = Provider::new(folder);
    let machine = laid(&captures::phoenix());
    for (library, options) in [(TODAY, &[][..]), (SOURCE, &["-DV1"])] {
        let program = provider.compile("edges.c", options);
        let said = Said::from(provider.on(machine.path(), &program, library).output().unwrap()).well();
        assert_eq!(said, "1 devices at each edge\n", "{library}");
    }
}

/// Runs so many rounds on a captured machine. valgrind 3.19 knows no openat2(2), by which a machine in a directory is read.
fn under_valgrind(provider: &Provider, rounds: &str) {
    let program = provider.compile("rounds.c", &[]);
    let machine = laid(&captures::phoenix());
    let mut valgrind = inside(machine.path());
    valgrind.args(["valgrind", "--quiet", "--error-exitcode=9"]);
    valgrind.args(["--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
    valgrind.arg(&program).arg(provider.folder.join(TODAY)).arg(rounds);
    let said = Said::from(valgrind.output().unwrap());
    assert_eq!(said.stderr, "");
    let said = said.well();
    assert!(said.starts_with("{\"devices\": 1, "), "{said}");
}

#[test]
fn real_valgrind_finds_nothing_in_50_rounds() {
    let Some([folder]) = real::require_made(["ROCWORKER_PROVIDER"], &["gcc"]) else { return };
    if !real::require_root(&["unshare", "mount", "valgrind"]) {
        return;
    }
    under_valgrind(&Provider::new(folder), "50");
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_valgrind_finds_nothing_in_10_000_rounds() {
    let Some([folder]) = real::require_made(["ROCWORKER_PROVIDER"], &["gcc"]) else { return };
    if !real::require_root(&["unshare", "mount", "valgrind"]) {
        return;
    }
    under_valgrind(&Provider::new(folder), "10000");
}

#[test]
fn real_no_memory_grows_over_a_thousand_rounds() {
    let Some([folder]) = real::require_made(["ROCWORKER_PROVIDER"], &["gcc"]) else { return };
    let provider = Provider::new(folder);
    let program = provider.compile("rounds.c", &[]);
    let machine = laid(&captures::phoenix());
    let said = Said::from(provider.on(machine.path(), &program, TODAY).arg("1000").output().unwrap()).well();
    let measured: serde_json::Value = serde_json::from_str(&said).unwrap();
    let kib: Vec<i64> =
        measured["resident_kib"].as_array().unwrap().iter().map(|it| it.as_i64().unwrap()).collect();
    // A thread's stack and the allocator's pools vary by so much.
    assert!(kib[1] - kib[0] < 1024, "{said}");
}
