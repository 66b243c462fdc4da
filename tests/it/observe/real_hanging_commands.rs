//! Commands on a machine of which a driver's file hangs: each ends in seconds, names the file, and says the rest.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use layout::Machine;
use nix::errno::Errno;
use support::fuse::{self, Fault, Operation, Served};
use support::laid::Laid;

const FIRST: &str = "/sys/bus/pci/devices/0000:05:00.0";
const SECOND: &str = "0000:15:00.0";

/// A command with one file that hangs waits for half a second. The rest is for a machine under load.
const LONGEST: Duration = Duration::from_secs(10);

/// In the order in which a file that several read is tried by one of them after the other.
const COMMANDS: [&[&str]; 8] = [
    &["-o", "json", "detect"],
    &["-o", "json", "topology"],
    &["doctor"],
    &["status"],
    &["plan"],
    &["health"],
    &["metrics"],
    &["cdi", "generate", "--file", "-"],
];

struct Said {
    status: ExitStatus,
    took: Duration,
    stdout: String,
    stderr: String,
}

/// Two cards with all readings, set up.
fn machine() -> (Laid, Served) {
    let laid = Laid::out(&Machine::instinct_with_readings(2, 1));
    let mut apply = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    let applied = apply.arg("--root").arg(laid.top()).arg("apply").output().unwrap();
    assert!(applied.status.success(), "{applied:?}");
    let served = Served::new(laid.top());
    (laid, served)
}

/// Runs it while nothing that hangs is released: a process that waited for such a read itself would not end.
#[track_caller]
fn run(served: &Served, words: &[&str]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let [stdout, stderr] = ["stdout", "stderr"].map(|name| folder.path().join(name));
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    command.arg("--root").arg(served.path()).args(words).current_dir(&folder);
    command.stdout(File::create(&stdout).unwrap()).stderr(File::create(&stderr).unwrap());
    let begun = Instant::now();
    let mut child = command.spawn().unwrap();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > LONGEST {
            served.mend();
            served.release();
            child.kill().unwrap();
            panic!("{words:?} hangs: {}", fs::read_to_string(&stderr).unwrap());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let [stdout, stderr] = [stdout, stderr].map(|path| fs::read_to_string(path).unwrap());
    Said { status, took: begun.elapsed(), stdout, stderr }
}

/// Releases what hangs, and waits until no process reads in the machine: it can be unmounted then.
fn mend(served: &Served) {
    served.mend();
    let reads_here = |entry: fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.windows(10).any(|it| it == b"read-files")
            && String::from_utf8_lossy(&line).contains(served.path().to_str().unwrap())
    };
    support::waiting::eventually("no process reads on", || {
        served.release();
        !fs::read_dir("/proc").unwrap().map_while(Result::ok).any(reads_here)
    });
}

/// The files of devices that a command reads.
fn files_of(served: &Served, words: &[&str]) -> Vec<PathBuf> {
    served.take_log();
    run(served, words);
    mend(served);
    let read = served.take_log().into_iter().filter(|(operation, _)| *operation == Operation::Read);
    let mut files: Vec<PathBuf> =
        read.map(|(_, path)| path).filter(|path| path.starts_with("/sys")).collect();
    files.sort();
    files.dedup();
    files
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_fuse_every_command_ends_and_names_the_file_whichever_of_a_machines_files_hangs() {
    if !fuse::require() {
        return;
    }
    let (_laid, served) = machine();
    let mut readers = BTreeMap::<PathBuf, Vec<&[&str]>>::new();
    for words in COMMANDS {
        let files = files_of(&served, words);
        assert!(files.len() > 5, "{words:?} reads {files:?}");
        files.into_iter().for_each(|file| readers.entry(file).or_default().push(words));
    }
    // Both cards have files of one name: those of one card do.
    readers.retain(|file, _| !file.to_str().unwrap().contains(SECOND));
    for (number, (file, readers)) in readers.iter().enumerate() {
        let words = readers[number % readers.len()];
        served.fault(file.to_str().unwrap(), Fault::Block);
        let said = run(&served, words);
        assert!(served.hanging() > 0, "{words:?} {file:?}: {}", said.stderr);
        let name = file.file_name().unwrap().to_str().unwrap();
        let names_it = |line: &str| line.contains(name) && line.contains("does not answer");
        assert!(said.stderr.lines().any(names_it), "{words:?} {file:?}: {}", said.stderr);
        assert!(said.took < LONGEST, "{words:?} {file:?}: {:?}", said.took);
        mend(&served);
    }
}

/// A read that fails says nothing of what is there: GPUs keep their numbers, and engines what they were told.
#[test]
fn real_fuse_no_file_that_cannot_be_read_moves_an_index_or_takes_a_gpu_from_engines() {
    if !fuse::require() {
        return;
    }
    let (_laid, served) = machine();
    let indexes = |served: &Served| -> BTreeMap<String, Option<u64>> {
        let said = run(served, &["-o", "json", "detect"]);
        let found: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        let gpus = found["gpus"].as_array().unwrap().iter();
        gpus.map(|gpu| (gpu["pci"].to_string(), gpu["index"].as_u64())).collect()
    };
    let expected = indexes(&served);
    let in_order = run(&served, &["plan"]).stdout;
    for file in files_of(&served, &["plan"]) {
        let name = file.to_str().unwrap();
        // Where uevent says what a function is, only both together leave it open.
        let both = [name.to_owned(), name.replace("uevent", "class")];
        for errno in [Errno::EIO, Errno::ENFILE] {
            both.iter().for_each(|name| served.fault(name, Fault::Errno(errno)));
            let found = indexes(&served);
            let moved =
                found.iter().find(|(pci, index)| index.is_some() && expected.get(*pci) != Some(*index));
            assert_eq!(moved, None, "{file:?} {errno}: {found:?}");
            let said = run(&served, &["plan"]);
            let is_kept = said.status.code() == Some(1) || said.stdout == in_order;
            assert!(is_kept, "{file:?} {errno}: {}{}", said.stdout, said.stderr);
            mend(&served);
        }
    }
}

/// Of a card of which every file hangs, the driver's and PCI's own.
#[test]
fn real_fuse_every_command_says_the_rest_where_all_files_of_a_card_hang() {
    if !fuse::require() {
        return;
    }
    let (laid, served) = machine();
    let hang = || {
        let folder = served.real(FIRST);
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(laid.path(folder.to_str().unwrap())).unwrap() {
                let entry = entry.unwrap();
                let path = folder.join(entry.file_name());
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => folders.push(path),
                    kind if kind.is_file() => served.fault(path.to_str().unwrap(), Fault::Block),
                    _ => {}
                }
            }
        }
    };
    for words in COMMANDS {
        hang();
        let said = run(&served, words);
        assert!(said.stderr.contains("does not answer"), "{words:?}: {}", said.stderr);
        match words {
            ["-o", "json", "detect" | "topology"] | ["metrics" | "health"] => {
                assert!(said.stdout.contains(SECOND), "{words:?}: {}\n{}", said.stdout, said.stderr);
            }
            // Which GPUs there are is not known: nothing is made of the rest alone.
            ["plan"] | ["cdi", ..] => {
                assert_eq!(said.status.code(), Some(1), "{words:?}: {}", said.stderr);
                assert!(
                    said.stderr.contains("which GPUs there are is not known"),
                    "{words:?}: {}",
                    said.stderr
                );
            }
            ["doctor"] => assert!(said.stdout.contains("does not answer"), "{words:?}: {}", said.stdout),
            _ => {}
        }
        mend(&served);
    }
}

#[test]
fn real_fuse_a_report_of_a_card_that_hangs_is_packed_without_what_hangs() {
    if !fuse::require() {
        return;
    }
    let (_laid, served) = machine();
    for name in ["gpu_metrics", "mem_info_vram_total", "uevent"] {
        served.fault(&format!("{FIRST}/{name}"), Fault::Block);
    }
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("report.tar.gz");
    let said = run(&served, &["report", "--file", archive.to_str().unwrap()]);
    assert!(said.status.success() && Path::new(&archive).exists(), "{}", said.stderr);
    assert!(said.stderr.contains("gpu_metrics does not answer"), "{}", said.stderr);
    mend(&served);
}
