//! A machine that a real systemd starts, as an apply has left it: what comes before what, and the daemon under its own
//! unit beside a real journald, udevd and containerd.
//!
//! systemd, udev and containerd are Debian 13's as packaged, the kernel is Debian 12's with its amdgpu and vgem. The
//! Concourse worker is a stand-in. As in real_daemon.rs vgem's render node stands for a card's, which folders of /sys say.

use std::path::Path;
use std::process::Command;

use qemu_machine::answers::Answers;
use qemu_machine::archive::Archive;
use qemu_machine::boot::boot;
use qemu_machine::kernel::Kernel;
use serde_json::{Value, json};
use support::real;
use support::release::Release;

use crate::init;
use crate::init::set_up::SetUp;
use crate::init::units::Units;
use crate::machine::laid;

/// Units of the test's own, and what it adds to others'. The daemon's watchdog is shortened, and it begins anew at once.
const UNITS: [(&str, &str); 4] = [
    (
        "driver.service",
        "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nRemainAfterExit=yes\nTimeoutStartSec=180\n\
         ExecStart=/bin/sh /test/driver.sh\n",
    ),
    (
        "steps.service",
        "[Unit]\nDefaultDependencies=no\nAfter=multi-user.target rocworker.service\n[Service]\n\
         ExecStart=/bin/sh /test/system.sh\n",
    ),
    ("containerd.service.d/test.conf", "[Service]\nExecStartPre=/bin/sh /test/record.sh containerd\n"),
    ("rocworker.service.d/test.conf", "[Service]\nWatchdogSec=10\nRestartSec=0\n"),
];
const WANTED: [(&str, &str); 4] = [
    ("driver", "/etc/systemd/system"),
    ("steps", "/etc/systemd/system"),
    ("concourse-worker", "/etc/systemd/system"),
    ("containerd", "/usr/lib/systemd/system"),
];

const SCRIPTS: [(&str, &str); 4] = [
    ("steps", include_str!("../../guest/steps.sh")),
    ("driver", include_str!("../../guest/driver.sh")),
    ("record", include_str!("../../guest/record.sh")),
    ("system", include_str!("../../guest/system.sh")),
];
/// The program before systemd: it gives QEMU's card another number from the first moment on.
const INIT: &str = concat!(
    include_str!("../../guest/first.sh"),
    include_str!("../../guest/card.sh"),
    "\nexec /usr/lib/systemd/systemd\n"
);

const APPLETS: [&str; 14] = [
    "cat", "cmp", "cut", "grep", "head", "insmod", "kill", "mount", "poweroff", "rmmod", "sh", "sleep",
    "sort", "tr",
];

#[test]
#[ignore = "cargo xtask test --all"]
fn real_systemd_starts_engines_after_the_boot_unit_and_keeps_the_daemon() {
    let variables =
        ["ROCWORKER_KERNELS", "ROCWORKER_UDEVADM_TRIXIE", "ROCWORKER_PROGRAM", "ROCWORKER_WRAPPER"];
    let programs = ["qemu-system-x86_64", "setpriv", "timeout", "busybox", "ldd", "strip", "xz"];
    let Some([kernels, udevadm, rocworker, wrapper]) = real::require_made(variables, &programs) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let kernel = Kernel::unpacked_in(&kernels.join("bookworm"));
    let stripped = place.path().join("rocworker");
    assert!(Command::new("strip").arg("-o").arg(&stripped).arg(&rocworker).status().unwrap().success());
    let release = Release::of(&udevadm);
    let set_up = SetUp::by(&stripped, &wrapper, &release);
    // Shortened below.
    assert!(set_up.text("etc/systemd/system/rocworker.service").contains("\nWatchdogSec="));
    let booted = boot(kernel.image(), &archive(&kernel, &release, &set_up), place.path());
    eprintln!("Linux {} ({}): {:.1} s", kernel.release(), booted.accelerator, booted.took.as_secs_f64());
    let answers = &booted.answers;
    // The machine ends with the first that fails.
    for step in
        ["started", "lose", "regain", "reload", "devices", "hang", "again", "stop", "journal", "failed"]
    {
        let answer = answers.of(step);
        assert_eq!(answer.status, 0, "{step}: {answer:#?}");
    }
    before_engines(answers);
    a_lost_node(answers);
    reloaded_and_ended(answers);
    assert_eq!(answers.said("failed"), "");
}

/// The driver comes while the boot unit waits for it; engines and the daemon come after both.
#[track_caller]
fn before_engines(answers: &Answers) {
    let units = Units::parse(answers.said("started"));
    let ms = |unit: &str, key: &str| units.us(unit, key) / 1000;
    let (began, ended) = (ms("rocworker-boot", "ExecMainStart"), ms("rocworker-boot", "ExecMainExit"));
    let divided = ms("rocworker-partition", "ExecMainExit");
    let driver = ms("driver", "ExecMainExit");
    let starts = ["containerd", "concourse-worker", "rocworker"].map(|unit| ms(unit, "InactiveExit"));
    let ready = ms("rocworker", "ActiveEnter");
    eprintln!(
        "ms of the machine's time: partition unit until {divided}, boot unit {began} to {ended}, driver there {driver}; \
         containerd, worker and daemon start {starts:?}, daemon ready {ready}"
    );
    // Of the two the partition unit comes first, and waits for the driver.
    assert!(driver < divided && divided < began && began < ended, "{units:#?}");
    assert!(starts.iter().all(|start| ended < *start) && ended < ready, "{units:#?}");
    for unit in ["rocworker-partition", "rocworker-boot", "containerd", "concourse-worker", "rocworker"] {
        assert_eq!(
            (units.of(unit, "ActiveState"), units.of(unit, "Result")),
            ("active", "success"),
            "{units:#?}"
        );
    }
    // The last start's second card is named no more.
    let found = answers.said("found");
    let tags = "tags: linux,gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=1,gfx1100";
    let expected = format!(
        "==> /run/record.containerd <==\nspec: renderD128\n\n==> /run/record.worker <==\nspec: renderD128\n{tags}"
    );
    assert_eq!(found, expected);
    let journal = answers.said("hang");
    assert!(
        journal.contains("waiting up to 120 s for GPU 0 (0000:00:05.0): no driver is bound to it"),
        "{journal}"
    );
    // The real containerd tells what configuration it runs by.
    let runtime = "Runtimes:map[amd:{Type:io.containerd.runc.v2";
    let wrapper = "Options:map[BinaryName:/usr/lib/rocworker/runc-amd-wrapper]";
    assert!(journal.contains(runtime) && journal.contains(wrapper), "{journal}");
}

#[track_caller]
fn a_lost_node(answers: &Answers) {
    let times = |step: &str| -> (f64, f64, String) {
        let said = answers.said(step);
        let mut lines = said.splitn(3, '\n');
        let mut time = || lines.next().unwrap().parse().unwrap();
        let times = (time(), time());
        (times.0, times.1, lines.next().unwrap_or_default().to_owned())
    };
    let (lost, gone, _) = times("lose");
    let (found, told, spec) = times("regain");
    eprintln!(
        "engines are told of no GPU {:.2} s after the node goes, of it {:.2} s after it comes",
        gone - lost,
        told - found
    );
    let spec: Value = serde_json::from_str(&spec).unwrap();
    let nodes = &spec["devices"][0]["containerEdits"]["deviceNodes"];
    let is_there = nodes.as_array().unwrap().iter().any(|node| node["path"] == "/dev/dri/renderD128");
    assert!(is_there, "{spec:#}");
}

#[track_caller]
fn reloaded_and_ended(answers: &Answers) {
    let status: Value = serde_json::from_str(answers.said("reload")).unwrap();
    let daemon = &status["daemon"];
    assert!(daemon["last"]["causes"].as_array().unwrap().contains(&json!("reload")), "{status:#}");
    assert_eq!(daemon["sources"], json!({"kernel": null, "files": null}), "{status:#}");
    assert!(daemon["counts"]["kernel"].as_u64() > Some(0), "{status:#}");
    let again = Units::parse(answers.said("again"));
    assert_eq!(again.of("rocworker", "NRestarts"), "1", "{again:#?}");
    assert_ne!(
        Some(again.of("rocworker", "MainPID")),
        daemon["pid"].as_u64().map(|pid| pid.to_string()).as_deref()
    );
    let journal = answers.said("journal");
    assert!(journal.contains("rocworker.service: Watchdog timeout (limit 10s)!"), "{journal}");
    let stopped = Units::parse(answers.said("stop"));
    let [began, ended] = ["ActiveExit", "InactiveEnter"].map(|key| stopped.us("rocworker", key));
    eprintln!("ended {} ms after systemd stopped it", (ended - began) / 1000);
    // This machine's clock goes on while the host computes other things: real_daemon.rs holds the second where it does not.
    assert!(ended - began < 3_000_000, "{stopped:#?}");
    assert_eq!(stopped.of("rocworker", "Result"), "success", "{stopped:#?}");
}

fn archive(kernel: &Kernel, release: &Release, set_up: &SetUp) -> Vec<u8> {
    let mut archive = Archive::default();
    // Anybody may write to the kernel's own, and no program beneath that is trusted.
    archive.folder(".");
    set_up.pack(&mut archive);
    init::debian::into(&mut archive, release);
    archive.file("init", 0o755, INIT.as_bytes());
    archive.copy("usr/bin/busybox", 0o755, &real::program("busybox").unwrap());
    APPLETS.iter().for_each(|applet| archive.link(&format!("usr/bin/{applet}"), "busybox"));
    for (name, text) in SCRIPTS {
        archive.file(&format!("test/{name}.sh"), 0o644, text.as_bytes());
    }
    let units = Path::new("etc/systemd/system");
    for (name, text) in UNITS {
        archive.file(units.join(name).to_str().unwrap(), 0o644, text.as_bytes());
    }
    for (unit, folder) in WANTED {
        let link = units.join(format!("multi-user.target.wants/{unit}.service"));
        archive.link(link.to_str().unwrap(), &format!("{folder}/{unit}.service"));
    }
    kernel.modules_into(&mut archive, &["amdgpu", "vgem"]);
    laid::into(&mut archive);
    archive.character_device("dev/console", 0o600, (5, 1));
    ["proc", "sys", "run", "tmp", "root", "home"].iter().for_each(|folder| archive.folder(folder));
    archive.finish()
}
