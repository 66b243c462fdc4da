//! What is in the archive, and what must not be.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use config::Config;
use host::timestamp::Timestamp;
use layout::{Entry, Machine, Nodes};
use reconcile::command::Programs;
use rocworker::report::take;
use root::Root;
use serde_json::Value;
use support::detect::{detect_beneath, scratch};

use crate::observe::report::archive::*;

#[test]
fn serial_numbers_processes_and_what_no_reader_asks_are_nowhere_in_the_archive() {
    let mut machine = machine()
        .put("/proc/sys/kernel/hostname", "gpu-farm-17.corp.example\n")
        .put("/etc/rocworker/id_rsa", SECRET)
        .put("/etc/containerd/certs.d/r/client.key", SECRET)
        .put("/sys/class/dmi/id/product_serial", SECRET)
        .put("/sys/bus/pci/devices/0000:01:00.0/uevent", format!("PCI_CLASS=20000\nX={SECRET}\n"))
        .put(&format!("/sys/class/kfd/kfd/proc/4711/{SECRET}"), "")
        .put("/sys/class/kfd/kfd/proc/4711/vram_7001", "1\n")
        .put("/sys/class/drm/card0-DP-1/edid", SECRET);
    for attribute in [
        "serial_number",
        "config",
        "rom",
        "resource",
        "resource0",
        "pcie_bw",
        "pp_table",
        "ras/features",
        "ip_discovery/x",
    ] {
        machine = machine.put(&format!("/sys/class/drm/card0/device/{attribute}"), SECRET);
    }
    let root = scratch();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    let archive = archive(root.path());
    for needle in [SECRET, "gpu-farm-17", "ann", root.path().to_str().unwrap()] {
        assert_nowhere(&archive, needle);
    }
    let entries = entries(&archive);
    let sysfs = entries.keys().filter(|path| path.starts_with("sys/"));
    let others: Vec<_> =
        sysfs.filter(|path| path.contains("kfd/proc") || path.contains("0000:01:00.0")).collect();
    assert!(others.is_empty(), "processes, and what is no GPU: {others:?}");
    assert_eq!(text(&entries, "etc/group"), "video:x:44:\nrender:x:992:\n");
}

#[test]
fn no_link_is_followed_out_of_what_is_listed_and_no_fifo_is_waited_for() {
    let shadow = format!("root:{SECRET}:1::::::\n");
    let machine = machine()
        .put("/etc/shadow", shadow)
        .put("/root/secret/daemon.json", format!("{{\"x\":\"{SECRET}\"}}"))
        .put("/etc/rocworker/config.yaml", Entry::Link("/etc/shadow".into()))
        .put("/etc/rocworker/policy.json", Entry::Link("../shadow".into()))
        .put("/etc/docker", Entry::Link("/root/secret".into()))
        .put("/etc/group", Entry::Link("shadow".into()))
        .put("/proc/devices", Entry::Link("/etc/shadow".into()))
        .put("/sys/class/drm/card0/device/product_name", Entry::Link("/etc/shadow".into()))
        .put(
            "/sys/class/drm/card0/device/mem_info_vram_total",
            Entry::Link("../../../../../../etc/shadow".into()),
        )
        .put("/sys/class/drm/card7", Entry::Link("../../../etc".into()))
        .put("/sys/class/drm/card8", Entry::Link("card8".into()))
        .put("/sys/class/drm/card9", Entry::Link("/etc".into()))
        .put("/sys/class/kfd/kfd/topology/nodes/9", Entry::Link("/root/secret".into()));
    let (root, into) = (scratch(), scratch());
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    let fifo =
        |path: &str| nix::unistd::mkfifo(&root.path().join(path), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::create_dir_all(root.path().join("etc/cdi")).unwrap();
    fifo("etc/cdi/amd.json");
    fifo("sys/bus/pci/devices/0000:03:00.0/gpu_busy_percent");
    symlink("/dev/zero", root.path().join("etc/cdi/zero.json")).unwrap();

    let archive = archive(root.path());
    assert_nowhere(&archive, SECRET);
    let entries = entries(&archive);
    for path in ["etc/rocworker/config.yaml", "etc/cdi/amd.json", "etc/cdi/zero.json", "proc/devices"] {
        assert!(!entries.contains_key(path), "{path}");
    }
    let record = text(&entries, "capture.json");
    for said in ["\"/etc/rocworker/config.yaml\"", "\"/etc/cdi/amd.json\"", "gpu_busy_percent", "out of /sys"]
    {
        assert!(record.contains(said), "{said}: {record}");
    }
    // No link in the archive leads anybody who unpacks it out of the folder.
    for (path, (header, _)) in &entries {
        if let Some(target) = header.link_name().unwrap() {
            let up = target.components().filter(|part| part.as_os_str() == "..").count();
            assert!(!target.is_absolute() && up < path.split('/').count(), "{path} -> {}", target.display());
        }
    }
    unpack(&archive, into.path());
}

#[test]
fn a_suspended_card_is_not_woken_and_the_rest_of_it_is_there() {
    let card = card()
        .attribute("power/runtime_status", "suspended")
        .attribute("gpu_metrics", "binary")
        .attribute("current_compute_partition", "SPX")
        .attribute("current_link_speed", "16.0 GT/s PCIe")
        .attribute("hwmon/hwmon3/temp1_input", "42000")
        .attribute("mem_info_vram_total", "51539607552")
        .attribute("vbios_version", "113-D7020100-102")
        .attribute("ras/umc_err_count", "ue: 0\nce: 3\n");
    let names = |machine: &Machine| {
        let root = scratch();
        machine.lay_out(root.path(), Nodes::Recorded).unwrap();
        let entries = entries(&archive(root.path()));
        let names = entries
            .keys()
            .filter_map(|path| path.split_once("0000:03:00.0/").map(|(_, name)| name.to_owned()));
        names.collect::<Vec<_>>()
    };
    let asked = [
        "current_compute_partition",
        "current_link_speed",
        "gpu_metrics",
        "hwmon/hwmon3/temp1_input",
        "mem_info_vram_total",
        "ras/umc_err_count",
        "vbios_version",
    ];
    let asleep = names(&machine_of(card.clone()));
    for there in ["numa_node", "power/runtime_status", "uevent"] {
        assert!(asleep.contains(&there.to_owned()), "{asleep:?}");
    }
    assert!(asked.iter().all(|name| !asleep.iter().any(|there| there == name)), "{asleep:?}");
    let awake = names(&machine_of(card.attribute("power/runtime_status", "active")));
    assert!(asked.iter().all(|name| awake.iter().any(|there| there == name)), "{awake:?}");
}

#[test]
fn what_the_daemon_judged_is_without_its_sentences_in_the_archive_unless_another_user_could_have_written_it()
{
    use std::os::unix::fs::PermissionsExt as _;
    const FILE: &str = "run/rocworker/health.json";
    let root = scratch();
    Machine::instinct_in_trouble(1, 1).lay_out(root.path(), Nodes::Recorded).unwrap();
    let path = root.path().join(FILE);
    let judged: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let taken: Value = serde_json::from_str(text(&entries(&archive(root.path())), FILE)).unwrap();
    assert!(judged["gpus"][0]["deductions"][0]["reason"].as_str().unwrap().contains(' '));
    for (taken, judged) in taken["gpus"].as_array().unwrap().iter().zip(judged["gpus"].as_array().unwrap()) {
        for key in ["pci", "state", "score", "hang"] {
            assert_eq!(taken[key], judged[key], "{key}");
        }
        let deductions =
            taken["deductions"].as_array().unwrap().iter().zip(judged["deductions"].as_array().unwrap());
        for (taken, judged) in deductions {
            assert_eq!((&taken["rule"], &taken["points"]), (&judged["rule"], &judged["points"]));
            assert_eq!(taken["reason"], "");
        }
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let entries = entries(&archive(root.path()));
    assert!(!entries.contains_key(FILE));
    assert!(text(&entries, "capture.json").contains("health.json can be written by others"));
}

/// The daemon's judgement is old a minute after its machine was captured, and says of the report what it said then.
#[test]
fn health_of_a_report_is_what_the_daemon_judged_however_late_it_is_read() {
    let (root, into) = (scratch(), scratch());
    Machine::instinct_in_trouble(1, 1).lay_out(root.path(), Nodes::Recorded).unwrap();
    let judged = fs::read(root.path().join("run/rocworker/health.json")).unwrap();
    let judged: Value = serde_json::from_slice(&judged).unwrap();
    let moment = Timestamp::of(UNIX_EPOCH + Duration::from_secs(judged["written_at"].as_u64().unwrap() + 5));
    let root = Root::open(root.path()).unwrap();
    let report = take(&root, Ok(&Config::read(&root).unwrap()), None, moment).unwrap();
    let top = unpack(&report.bytes, into.path());
    let output = Command::new(PROGRAM).arg("--root").arg(&top).arg("health").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("Judged on the machine 5 s before the report was made."), "{stderr}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let state = judged["gpus"][0]["state"].as_str().unwrap();
    assert!(stdout.contains(state) && stdout.contains("a report leaves out why"), "{stdout}");
    let status = Command::new(PROGRAM).arg("--root").arg(&top).arg("status").output().unwrap();
    assert!(String::from_utf8(status.stderr).unwrap().contains("this is a report"));
}

#[test]
#[ignore = "cargo xtask test --all"]
fn what_is_too_large_is_left_out_and_said() {
    let mut machine = machine().put("/usr/bin/dockerd", "").put("/etc/docker/daemon.json", vec![0xff; 10]);
    for n in 10..28 {
        machine = machine
            .put(&format!("/etc/cdi/{n}.json"), format!("{{\"kind\":[{}1]}}", "1,".repeat((1 << 19) - 9)));
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
    assert!(said("/etc/docker/daemon.json").contains("not text"));
    assert!(said("/etc/cdi/27.json").contains("the report would be larger"));
    detect_beneath(Path::new(PROGRAM), &unpack(&archive, scratch().path()));
}

#[test]
fn of_the_kernels_log_known_messages_are_taken_and_of_programs_their_versions() {
    let (root, programs) = (scratch(), scratch());
    machine().put("/proc/sys/kernel/hostname", "farm-3\n").lay_out(root.path(), Nodes::Recorded).unwrap();
    stand_in(
        programs.path(),
        "journalctl",
        &format!(
            "2026-11-21T07:00:00+0000 kernel: amdgpu 0000:03:00.0: ring gfx timeout, signaled seq=1, emitted seq=2 on farm-3\n\
             2026-11-21T07:00:01+0000 kernel: wlan0: {SECRET}\n\
             2026-11-21T07:00:01+0000 kernel: audit: type=1309 audit(1764.5:12): argc=2 a0=\"amdgpu\" a1=\"-p{SECRET}\"\n\
             2026-11-21T07:00:01+0000 kernel: [drm:x [amdgpu]] *ERROR* Process information: process {SECRET} pid 7 thread {SECRET} pid 8\n\
             2026-11-21T07:00:02+0000 kernel: pcieport 0000:00:01.1: AER: Correctable error message received from 0000:03:00.0\n\
             2026-11-21T07:00:03+0000 containerd: runc-amd-wrapper: GPU 7: token={SECRET}"
        ),
    );
    stand_in(programs.path(), "runc", "runc version 1.1.5\ncommit: x");
    let root = Root::open(root.path()).unwrap();
    let config = Config::read(&root).unwrap();
    // The folder of the stand-ins and that of the shell's cat.
    let path = std::env::join_paths([programs.path(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let moment = Timestamp::of(UNIX_EPOCH + Duration::from_secs(1_795_246_620));
    let taken = || take(&root, Ok(&config), Some(&Programs::in_folders(path.clone())), moment).unwrap();
    let report = taken();
    assert_nowhere(&report.bytes, SECRET);
    assert_nowhere(&report.bytes, "farm-3");
    let entries = entries(&report.bytes);
    let kernel = text(&entries, "logs/kernel.log");
    let expected = "2026-11-21T07:00:00+0000 kernel: amdgpu 0000:03:00.0: ring gfx timeout, signaled seq=1, emitted seq=2\n\
                    2026-11-21T07:00:01+0000 kernel: amdgpu: Process information: process [removed] pid 7 thread [removed] pid 8\n\
                    2026-11-21T07:00:02+0000 kernel: pcieport 0000:00:01.1: Correctable error message received from 0000:03:00.0\n";
    assert_eq!(kernel, expected);
    let versions: Value = serde_json::from_str(text(&entries, "versions.json")).unwrap();
    assert_eq!(versions["programs"]["runc"], "1.1.5");
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
