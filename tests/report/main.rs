//! `report`: what detect said on the machine it says again on the archive, and nothing is in it that is
//! nobody's business.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, lays out files, and runs the program"
)]

mod machines;
mod private;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, UNIX_EPOCH};

use flate2::read::GzDecoder;
use layout::{Device, Entry, Gpu, Kfd, KfdNode, Machine, Module, Nodes};
use rocworker::command::Programs;
use rocworker::config::Config;
use rocworker::report::{Moment, take};
use root::Root;
use serde_json::Value;
use support::detect::{detect_beneath, scratch};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");
const ADDRESS: &str = "0000:03:00.0";
/// Stands in every file that must not be in an archive.
const SECRET: &str = "hunter2-correct-horse";

fn report(root: &Path, file: &Path) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("--root").arg(root).args(["--output", "json", "report", "--file"]).arg(file).output().unwrap()
}

/// The archive of a machine that is laid out, which must be taken.
fn archive(root: &Path) -> Vec<u8> {
    let output = report(root, Path::new("-"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// An archive's entries by their path beneath its one top folder.
fn entries(archive: &[u8]) -> BTreeMap<String, (tar::Header, Vec<u8>)> {
    let mut entries = BTreeMap::new();
    for entry in tar::Archive::new(GzDecoder::new(archive)).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let (top, inside) = path.split_once('/').unwrap_or((&path, ""));
        assert!(top.starts_with("rocworker-report-"), "{path}");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        entries.insert(inside.trim_end_matches('/').to_owned(), (entry.header().clone(), bytes));
    }
    entries
}

fn text<'a>(entries: &'a BTreeMap<String, (tar::Header, Vec<u8>)>, path: &str) -> &'a str {
    let (_, bytes) = entries.get(path).unwrap_or_else(|| panic!("{path} is not in the archive"));
    std::str::from_utf8(bytes).unwrap()
}

/// Unpacks an archive; the folder in it.
fn unpack(archive: &[u8], into: &Path) -> PathBuf {
    tar::Archive::new(GzDecoder::new(archive)).unpack(into).unwrap();
    let tops: Vec<_> = fs::read_dir(into).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [top] = tops.as_slice() else { panic!("{tops:?}") };
    top.clone()
}

/// An answer as it would be on the machine itself: sentences name paths where they were read.
fn as_on_the_machine(answer: &Value, root: &Path) -> String {
    format!("{answer:#}").replace(root.to_str().unwrap(), "")
}

fn doctor_beneath(root: &Path) -> Value {
    let output =
        Command::new(PROGRAM).arg("--root").arg(root).args(["--output", "json", "doctor"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn card() -> Gpu {
    Gpu::amd(ADDRESS, 0x7448).card(0).render(128).attribute("product_name", "AMD Radeon PRO W7900")
}

fn node() -> KfdNode {
    KfdNode::gpu(7001, 0x7448, 110_000).at(ADDRESS).render(128).memory(48 << 30)
}

fn machine() -> Machine {
    Machine::new()
        .module(Module::new("amdgpu").srcversion("5AC1AB1E5AC1AB1E5AC1AB1"))
        .gpu(card())
        .kfd(Kfd::new(511).node(KfdNode::cpu(16)).node(node()))
        .put("/etc/group", "root:x:0:\nvideo:x:44:ann\nrender:x:992:ann,bob\nwheel:x:10:ann\n")
}

#[test]
fn detect_says_the_same_of_the_archive_as_of_the_machine() {
    for (name, machine) in machines::all() {
        let (root, into) = (scratch(), scratch());
        machine.lay_out(root.path(), Nodes::Recorded).unwrap();
        let before = as_on_the_machine(&detect_beneath(Path::new(PROGRAM), root.path()), root.path());
        let archive = archive(root.path());
        let top = unpack(&archive, into.path());
        let after = as_on_the_machine(&detect_beneath(Path::new(PROGRAM), &top), &top);
        assert_eq!(after, before, "{name}");
        let taken: Value = serde_json::from_str(text(&entries(&archive), "detect.json")).unwrap();
        assert_eq!(format!("{taken:#}"), before, "{name}: detect.json");
        let doctors = [root.path(), &top].map(|root| as_on_the_machine(&doctor_beneath(root), root));
        assert_eq!(doctors[1], doctors[0], "{name}");
    }
}

/// What doctor reads beside what detect does.
#[test]
fn doctor_says_the_same_of_the_archive_as_of_the_machine() {
    let unloaded = Machine::new().gpu(card().unbound()).put("/etc/group", "gpu:x:500:\n");
    let machine = unloaded
        .put("/proc/sys/kernel/osrelease", "6.8.0-45-generic\n")
        .put("/proc/cmdline", format!("root=/dev/sda1 nomodeset token={SECRET}\n"))
        .put("/etc/modprobe.d/a.conf", format!("# {SECRET}\n\nblacklist amdgpu\noptions x pw={SECRET}\n"))
        .put("/usr/lib/modprobe.d/b.conf", "blacklist amdgpu\n")
        .put("/etc/modprobe.d/b.conf", "# hides the other\n")
        .put(
            "/usr/lib/modules/6.8.0-45-generic/modules.dep",
            "a/radeon.ko: a/drm.ko\na/amdgpu.ko.zst: a/drm.ko\n",
        )
        .put("/lib", Entry::Link("usr/lib".into()))
        .put("/dev/dri/renderD128", Device::new(226, 128, 500));
    let (root, into) = (scratch(), scratch());
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    let archive = archive(root.path());
    let top = unpack(&archive, into.path());
    let doctors = [root.path(), &top].map(|root| as_on_the_machine(&doctor_beneath(root), root));
    assert_eq!(doctors[1], doctors[0]);
    assert!(
        doctors[0].contains("/etc/modprobe.d/a.conf:3") && !doctors[0].contains("modules.dep"),
        "{}",
        doctors[0]
    );
    let entries = entries(&archive);
    assert_eq!(text(&entries, "etc/group"), "gpu:x:500:\n", "a group that owns a node is named");
    assert_eq!(text(&entries, "proc/cmdline"), "nomodeset\n");
    assert_nowhere(&archive, SECRET);
}

/// In no name and no byte of the unpacked archive.
#[track_caller]
fn assert_nowhere(archive: &[u8], needle: &str) {
    let mut bytes = Vec::new();
    GzDecoder::new(archive).read_to_end(&mut bytes).unwrap();
    let found = bytes.windows(needle.len()).position(|window| window == needle.as_bytes());
    let around = found
        .map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(200)..at + needle.len()]).into_owned());
    assert_eq!(around, None, "{needle}");
}

#[test]
fn a_suspended_card_is_not_woken_and_the_rest_of_it_is_there() {
    let card = card()
        .attribute("power/runtime_status", "suspended")
        .attribute("gpu_metrics", "binary")
        .attribute("current_compute_partition", "SPX")
        .attribute("current_link_speed", "16.0 GT/s PCIe")
        .attribute("hwmon/hwmon3/temp1_input", "42000")
        .attribute("mem_info_vram_total", "51539607552");
    let names = |machine: &Machine| {
        let root = scratch();
        machine.lay_out(root.path(), Nodes::Recorded).unwrap();
        let entries = entries(&archive(root.path()));
        let names = entries
            .keys()
            .filter_map(|path| path.split_once("0000:03:00.0/").map(|(_, name)| name.to_owned()));
        names.collect::<Vec<_>>()
    };
    let asked =
        ["current_compute_partition", "current_link_speed", "gpu_metrics", "hwmon/hwmon3/temp1_input"];
    let asleep = names(&machine_of(card.clone()));
    assert!(asleep.contains(&"mem_info_vram_total".to_owned()), "{asleep:?}");
    assert!(asked.iter().all(|name| !asleep.iter().any(|there| there == name)), "{asleep:?}");
    let awake = names(&machine_of(card.attribute("power/runtime_status", "active")));
    assert!(asked.iter().all(|name| awake.iter().any(|there| there == name)), "{awake:?}");
}

fn machine_of(card: Gpu) -> Machine {
    Machine::new().module(Module::new("amdgpu")).gpu(card).kfd(Kfd::new(511).node(node()))
}

#[test]
fn what_is_too_large_is_left_out_and_said() {
    let mut machine = machine()
        .put("/etc/containerd/config.toml", vec![b'#'; (1 << 20) + 1])
        .put("/etc/default/concourse", vec![0xff; 10])
        .put("/sys/class/drm/card0/device/revision", vec![b'1'; (64 << 10) + 1]);
    for n in 10..28 {
        machine = machine.put(&format!("/etc/cdi/{n}.json"), vec![b'x'; 1 << 20]);
    }
    let root = scratch();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    let archive = archive(root.path());
    let entries = entries(&archive);
    let size: usize = entries.values().map(|(_, bytes)| bytes.len()).sum();
    assert!((14 << 20..17 << 20).contains(&size), "{size}");
    let record: Value = serde_json::from_str(text(&entries, "capture.json")).unwrap();
    let said = |path: &str| {
        let notes = record["left_out"].as_array().unwrap();
        notes.iter().find(|note| note["path"] == path).unwrap_or_else(|| panic!("{path}: {record:#}"))["reason"].to_string()
    };
    assert!(said("/etc/containerd/config.toml").contains("larger than 1048576 bytes"));
    assert!(said("/etc/default/concourse").contains("not text"));
    assert!(said("/etc/cdi/27.json").contains("the report would be larger"));
    assert!(record.to_string().contains("revision is larger than 65536 bytes"), "{record:#}");
    detect_beneath(Path::new(PROGRAM), &unpack(&archive, scratch().path()));
}

#[test]
fn a_file_is_written_new_and_for_its_owner_alone() {
    let (root, out) = (scratch(), scratch());
    machine().put("/etc/hostname", "farm-3\n").lay_out(root.path(), Nodes::Recorded).unwrap();
    let file = out.path().join("r.tar.gz");
    let output = report(root.path(), &file);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["path"], file.to_str().unwrap());
    assert_eq!(answer["schema_version"], 1);
    assert_eq!(answer["bytes"], fs::metadata(&file).unwrap().len());
    assert_eq!(answer["entries"], entries(&fs::read(&file).unwrap()).len() - 1, "without the top folder");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);

    fs::write(&file, "mine").unwrap();
    symlink("nowhere", out.path().join("link")).unwrap();
    for name in ["r.tar.gz", "link"] {
        let output = report(root.path(), &out.path().join(name));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(
            stderr.contains("exists: name another file with --file") && stderr.lines().count() == 1,
            "{stderr}"
        );
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    assert!(!out.path().join("nowhere").exists());
    let missing = report(root.path(), &out.path().join("no/such/r.tar.gz"));
    assert_eq!(missing.status.code(), Some(1));
    let left: Vec<_> = fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "no temporary file stays: {left:?}");

    let output =
        Command::new(PROGRAM).arg("--root").arg(root.path()).arg("report").current_dir(out.path()).output();
    let output = output.unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let made =
        fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let made = made.into_iter().find(|name| name.starts_with("rocworker-report-farm-3-20")).unwrap();
    assert!(made.ends_with("Z.tar.gz") && table.contains(&made), "{table}");
    assert!(table.contains("Look through it before you send it"), "{table}");
}

#[test]
fn a_wrong_configuration_is_reported_and_does_not_keep_anybody_from_reporting() {
    let root = scratch();
    let wrong = format!("no-such: 1\ntoken: {SECRET}\n");
    machine().put("/etc/rocworker/config.yaml", wrong).lay_out(root.path(), Nodes::Recorded).unwrap();
    let archive = archive(root.path());
    let entries = entries(&archive);
    assert!(text(&entries, "doctor.json").contains("/etc/rocworker/config.yaml:1: unknown field `no-such`"));
    assert!(text(&entries, "etc/rocworker/config.yaml").starts_with("no-such: 1\n"));
    assert_nowhere(&archive, SECRET);
}

/// Stands in for a program: prints `text` whatever it is asked.
fn stand_in(folder: &Path, name: &str, text: &str) {
    let script = folder.join("text");
    fs::write(&script, format!("#!/bin/sh\ncat <<'END'\n{text}\nEND\n")).unwrap();
    // Not written in place: a test that forks meanwhile would inherit the descriptor (ETXTBSY).
    assert!(Command::new("install").arg(&script).arg(folder.join(name)).status().unwrap().success());
}

#[test]
fn of_logs_the_lines_about_gpus_are_taken_and_of_programs_their_versions() {
    let (root, programs) = (scratch(), scratch());
    machine().put("/proc/sys/kernel/hostname", "farm-3\n").lay_out(root.path(), Nodes::Recorded).unwrap();
    stand_in(
        programs.path(),
        "journalctl",
        &format!(
            "2026-11-21T07:00:00+0000 kernel: amdgpu 0000:03:00.0: ring gfx timeout on farm-3\n\
             2026-11-21T07:00:01+0000 kernel: wlan0: {SECRET}\n\
             2026-11-21T07:00:02+0000 kernel: pcieport 0000:00:01.1: AER: Correctable error\n\
             2026-11-21T07:00:03+0000 containerd: runc-amd-wrapper: GPU 7: token={SECRET}"
        ),
    );
    stand_in(programs.path(), "runc", "runc version 1.1.5\ncommit: x");
    let root = Root::open(root.path()).unwrap();
    let config = Config::read(&root).unwrap();
    // The folder of the stand-ins and that of the shell's cat.
    let path = std::env::join_paths([programs.path(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let moment = Moment::of(UNIX_EPOCH + Duration::from_secs(1_795_246_620));
    let taken = || take(&root, Ok(&config), Some(&Programs::in_folders(path.clone())), moment).unwrap();
    let report = taken();
    assert_nowhere(&report.bytes, SECRET);
    assert_nowhere(&report.bytes, "farm-3");
    let entries = entries(&report.bytes);
    let kernel = text(&entries, "logs/kernel.log");
    assert!(kernel.contains("ring gfx timeout on HOST\n") && kernel.contains("AER: Correctable"), "{kernel}");
    assert!(!kernel.contains("wlan0"), "{kernel}");
    assert!(text(&entries, "logs/runc-amd-wrapper.log").contains("runc-amd-wrapper: GPU 7: token="));
    let versions: Value = serde_json::from_str(text(&entries, "versions.json")).unwrap();
    assert_eq!(versions["programs"]["runc"]["version"], "runc version 1.1.5");
    assert_eq!(versions["rocworker"], env!("CARGO_PKG_VERSION"));
    for (path, (header, _)) in &entries {
        assert_eq!(
            (header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()),
            (0, 0, 1_795_246_620),
            "{path}"
        );
    }
    assert_eq!(taken().bytes, report.bytes, "the same machine at the same moment is the same archive");
}
