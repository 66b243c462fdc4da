//! Unpacked, the archive is the machine again.

use crate::observe::report::archive::*;
use layout::{Device, Entry, Machine, Module, Nodes};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use support::captures;
use support::detect::{detect_beneath, scratch};

#[test]
fn detect_says_the_same_of_the_archive_as_of_the_machine() {
    for (name, machine) in machines() {
        let (root, into) = (scratch(), scratch());
        machine.lay_out(root.path(), Nodes::Recorded).unwrap();
        let before = as_on_the_machine(&detect_beneath(Path::new(PROGRAM), root.path()), root.path());
        let top = unpack(&archive(root.path()), into.path());
        let after = as_on_the_machine(&detect_beneath(Path::new(PROGRAM), &top), &top);
        assert_eq!(after, before, "{name}");
        let doctors = [root.path(), &top].map(|root| as_on_the_machine(&doctor_beneath(root), root));
        assert_eq!(doctors[1], doctors[0], "{name}");
    }
}

/// A command's JSON, without when it was asked and how long it took.
fn asked(command: &[&str], root: &Path) -> String {
    let mut program = Command::new(PROGRAM);
    let output = program.arg("--root").arg(root).args(["--output", "json"]).args(command).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr);
    let mut answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{command:?}: {shown}"));
    if let Some(taken_at) = answer.get_mut("taken_at") {
        taken_at.take();
    }
    if let Some(samples) = answer.get_mut("samples").and_then(Value::as_array_mut) {
        samples.retain(|it| it["metric"] != "rocm_exporter_scrape_duration_seconds");
    }
    as_on_the_machine(&answer, root)
}

/// What reads cards reads the archive as it read the machine: no list of files of its own stands between.
#[test]
fn topology_top_and_metrics_say_the_same_of_the_archive_as_of_the_machine() {
    let machines = [
        ("readings", Machine::instinct_with_readings(2, 1)),
        ("readings of partitions", Machine::instinct_with_readings(1, 8)),
        ("links", Machine::instinct_linked(2, 2)),
        ("errors", Machine::instinct_in_trouble(2, 1).remove("/run/rocworker")),
        ("a consumer card's readings", captures::rx7800xt()),
        ("an APU beside an NVIDIA card", captures::phoenix_beside_rtx4080()),
        ("a suspended card", machine_of(card().attribute("power/runtime_status", "suspended"))),
        ("a KFD node without properties", machine().remove("/sys/class/kfd/kfd/topology/nodes/1/properties")),
        ("no KFD", Machine::new().module(Module::new("amdgpu")).gpu(card())),
        ("nothing", Machine::new()),
    ];
    for (name, machine) in machines {
        let (root, into) = (scratch(), scratch());
        // Who uses the GPUs is in no report.
        let machine = machine.remove("/sys/class/kfd/kfd/proc");
        machine.lay_out(root.path(), Nodes::Recorded).unwrap();
        let top = unpack(&archive(root.path()), into.path());
        for command in [&["topology"][..], &["top", "--once"], &["metrics"]] {
            let of_archive = asked(command, &top);
            assert_eq!(of_archive, asked(command, root.path()), "{name}: {command:?}");
            let has_all = ["rocm_gpu_temperature", "rocm_pcie_replays_total", "rocm_ras_errors_total"];
            let is_of_errors = name == "errors" && command == ["metrics"];
            assert!(!is_of_errors || has_all.iter().all(|it| of_archive.contains(it)), "{of_archive}");
        }
    }
}

/// No journalctl is asked of a machine in a folder: its log is what was captured of /dev/kmsg.
#[test]
fn explain_finds_the_messages_of_a_captured_log_in_the_archive_too() {
    const LOG: &str = "3,1,1000000,-;amdgpu 0000:03:00.0: ring gfx_0.0.0 timeout, signaled seq=11, emitted seq=13\n\
                       6,2,2000000,-;usb 1-1: new device of farm-3\n";
    let found = |root: &Path| {
        let answer: Value = serde_json::from_str(&asked(&["explain", "--journal"], root)).unwrap();
        let matches = answer["matches"].as_array().unwrap().clone();
        matches.into_iter().map(|it| (it["id"].clone(), it["gpu"].clone())).collect::<Vec<_>>()
    };
    // doctor looks at the log of a machine whose KFD lacks a GPU.
    for machine in [machine(), machine().remove("/sys/class/kfd/kfd/topology/nodes/1")] {
        let (root, into) = (scratch(), scratch());
        machine.put("/dev/kmsg", LOG).lay_out(root.path(), Nodes::Recorded).unwrap();
        let top = unpack(&archive(root.path()), into.path());
        assert_eq!(found(&top), found(root.path()));
        assert_eq!(found(&top)[0].0, "ring-timeout");
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
