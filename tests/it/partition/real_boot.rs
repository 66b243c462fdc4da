//! Modes over a start of the machine: the unit that apply installs, what it runs, and what tells a person of modes that are
//! not as they should be.

use inventory::partitioning::Compute;
use layout::Entry;
use support::fuse;
use support::partitioned::{Driver, Partitioned};

use crate::daemon::running::{Running, applied};
use crate::setup::laid::Laid;

use super::machine::refused;

const UNIT: &str = "etc/systemd/system/rocworker-partition.service";
const LINK: &str = "etc/systemd/system/multi-user.target.wants/rocworker-partition.service";

/// Two cards and two profiles; the machine is to be in the first.
const CORES: &str = "boot: {wait-s: 1}
partitions:
  profile: cores
  profiles:
    cores: [{cards: all, compute: CPX}]
    quarters: [{cards: all, compute: CPX, memory: NPS4}]
";

/// A machine that systemd starts. The parts are dropped in their order: the file system is unmounted first.
struct Server {
    machine: Partitioned,
    laid: Laid,
}

fn server(config: &str) -> Server {
    let driver = Driver::new(2);
    let laid = Laid::out(&driver.machine().put("/run/systemd/system", Entry::Directory), config);
    laid.put("usr/bin/rocworker", "stands for the program\n");
    laid.put("proc/sys/kernel/random/boot_id", "first\n");
    laid.put("proc/uptime", "100.00 100.00\n");
    let machine = Partitioned::at(&laid.path(""), driver);
    Server { machine, laid }
}

impl Server {
    fn reboot(&self, boot: &str) {
        self.machine.change(Driver::reboot);
        self.laid.put("proc/sys/kernel/random/boot_id", &format!("{boot}\n"));
    }

    /// Whether the machine is in sync, and what `status` warns of.
    fn status(&self) -> (bool, String) {
        let output = self.laid.run(&["status"]).get_output().clone();
        let text = String::from_utf8(output.stdout).unwrap();
        let about = text.lines().filter(|line| line.contains("partitions:"));
        (output.status.success(), about.collect::<Vec<_>>().join("\n"))
    }
}

#[test]
fn real_apply_installs_the_unit_and_switches_no_card_and_status_says_what_differs() {
    if !fuse::require() {
        return;
    }
    let server = server(CORES);
    let planned =
        String::from_utf8(server.laid.run(&["plan"]).success().get_output().stdout.clone()).unwrap();
    assert!(planned.contains("the cards are not in the profile cores"), "{planned}");
    server.laid.run(&["apply"]).success();
    assert_eq!((server.machine.modes(), server.machine.log()), (vec!["SPX/NPS1".to_owned(); 2], vec![]));
    let unit = server.laid.text(UNIT);
    for line in
        ["ExecStart=/usr/bin/rocworker boot-partitions", "Before=rocworker-boot.service rocworker.service"]
    {
        assert!(unit.contains(line), "{line}: {unit}");
    }
    assert!(server.laid.path(LINK).symlink_metadata().is_ok());
    let (in_sync, text) = server.status();
    assert!(!in_sync && text.contains("the cards are not in the profile cores"), "{text}");

    for boot in ["first", "second"] {
        server.laid.run(&["boot-partitions"]).success();
        assert_eq!(server.machine.modes(), ["CPX/NPS1"; 2]);
        server.laid.run(&["boot"]).success();
        assert_eq!(server.status(), (true, String::new()), "{boot}");
        server.reboot("second");
    }
    let config = CORES.replace("  profile: cores\n", "");
    server.laid.put("etc/rocworker/config.yaml", &config);
    server.laid.run(&["apply"]).success();
    assert!(!server.laid.path(UNIT).exists() && server.laid.path(LINK).symlink_metadata().is_err());
    let said = server.laid.run(&["boot-partitions"]).success();
    let said = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
    assert!(said.contains("config.yaml has no partitions.profile"), "{said}");
}

#[test]
fn real_a_boot_loads_the_driver_again_only_where_the_configuration_says_so() {
    if !fuse::require() {
        return;
    }
    let server = server(&CORES.replace("profile: cores", "profile: quarters"));
    let root = server.machine.root();
    let (code, stderr) = refused(root, "boot-partitions");
    assert_eq!(code, Some(1));
    assert!(stderr.contains("nothing was changed") && stderr.contains("partitions.reload: boot"), "{stderr}");
    assert_eq!(server.machine.log(), [""; 0]);
}

#[test]
fn real_a_boot_leaves_cards_to_the_program_of_amds_that_switches_them() {
    if !fuse::require() {
        return;
    }
    let server = server(CORES);
    server.laid.put("var/log/pods/kube-amd-gpu_amd-device-config-manager-x7_42/manager/0.log", "");
    let said = server.laid.run(&["boot-partitions"]).success();
    let said = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
    assert!(said.contains("AMD's Device Config Manager") && said.contains("leaves them alone"), "{said}");
    assert_eq!(server.machine.log(), [""; 0]);
    let doctor = server.laid.json(&["doctor"]).to_string();
    assert!(doctor.contains("AMD's Device Config Manager"), "{doctor}");
}

#[test]
fn real_a_boot_waits_for_cards_that_the_driver_takes_late() {
    if !fuse::require() {
        return;
    }
    let server = server(&CORES.replace("wait-s: 1", "wait-s: 60"));
    server.machine.change(|driver| driver.is_loaded = false);
    std::thread::scope(|scope| {
        let boot = scope.spawn(|| server.laid.run(&["boot-partitions"]).success());
        std::thread::sleep(std::time::Duration::from_millis(700));
        server.machine.change(|driver| driver.is_loaded = true);
        boot.join().unwrap();
    });
    assert_eq!(server.machine.modes(), ["CPX/NPS1"; 2]);
}

/// What the daemon says of the modes.
fn told(daemon: &Running<'_>, text: &str) {
    daemon.until(text, |said| {
        let problems = said["problems"].as_array().into_iter().flatten();
        problems
            .filter(|it| it["about"] == "partitions")
            .any(|it| it["text"].as_str().unwrap().contains(text))
    });
}

#[test]
fn real_the_daemon_reports_cards_that_lose_their_modes() {
    if !fuse::require() {
        return;
    }
    let server = server(CORES);
    let daemon = applied(&server.laid);
    told(&daemon, "the cards are not in the profile cores");
    server.laid.run(&["partition", "set"]).success();
    daemon.until("nothing is wrong", |said| said["problems"] == serde_json::json!([]));
    server.machine.change(|driver| driver.switch(1, Compute::Spx));
    told(&daemon, "cards have lost the modes of the switch to cores: 0000:15:00.0 is in SPX, not in CPX");
    assert_eq!(server.machine.modes(), ["CPX/NPS1", "SPX/NPS1"]);
    let (in_sync, text) = server.status();
    assert!(!in_sync && text.contains("0000:15:00.0 is in SPX, not in CPX"), "{text}");
    // A person sets another profile: the daemon compares the cards with that one.
    server.laid.put(
        "etc/rocworker/config.yaml",
        &format!("{CORES}    mixed: [{{cards: \"0000:05:00.0\", compute: CPX}}]\n"),
    );
    server.laid.run(&["partition", "set", "mixed"]).success();
    let (_, text) = server.status();
    let text = text.lines().find(|line| line.starts_with("warning")).unwrap_or_default();
    assert!(!text.contains("lost") && text.contains("the cards are not in the profile cores"), "{text}");
    drop(daemon);
    server.laid.run(&["undo"]).success();
    assert!(!server.laid.path("var/lib/rocworker/partition.json").exists());
    assert_eq!(server.machine.modes(), ["SPX/NPS1"; 2]);
}

#[test]
fn real_the_daemon_repairs_where_it_may_and_never_a_card_that_is_in_use() {
    if !fuse::require() {
        return;
    }
    let server = server(&CORES.replace("  profiles:", "  on-revert: repair\n  profiles:"));
    let daemon = applied(&server.laid);
    // rocworker has switched no card in this boot: the daemon compares the cards with the profile.
    daemon.until("the profile is set", |_| server.machine.modes() == ["CPX/NPS1"; 2]);
    // Soon after a repair another switch is another program's.
    server.machine.change(|driver| driver.switch(1, Compute::Spx));
    told(&daemon, "cards have lost the modes of the switch to cores");
    assert_eq!(server.machine.modes(), ["CPX/NPS1", "SPX/NPS1"]);
    drop(daemon);

    server.machine.change(|driver| driver.processes.push(4711));
    let daemon = Running::begin(&server.laid);
    told(
        &daemon,
        "they are not repaired: nothing was changed: after 0 s these processes are still on the cards: a process (pid 4711)",
    );
    assert_eq!(server.machine.modes(), ["CPX/NPS1", "SPX/NPS1"]);
    server.machine.change(|driver| driver.processes.clear());
    daemon.signal(nix::sys::signal::Signal::SIGHUP);
    daemon.until("it is repaired", |said| said["problems"] == serde_json::json!([]));
    assert_eq!(server.machine.modes(), ["CPX/NPS1"; 2]);
}

/// A person has chosen other modes since the start of the machine, or has interrupted a switch.
#[test]
fn real_the_daemon_repairs_nothing_that_a_person_has_chosen() {
    if !fuse::require() {
        return;
    }
    let config = CORES
        .replace("  profiles:", "  on-revert: repair\n  profiles:\n    halves: [{cards: all, compute: DPX}]");
    let server = server(&config);
    server.laid.run(&["apply"]).success();
    server.laid.run(&["partition", "set", "halves"]).success();
    let daemon = Running::begin(&server.laid);
    told(&daemon, "the cards are not in the profile cores");
    for _ in 0..4 {
        daemon.signal(nix::sys::signal::Signal::SIGHUP);
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    told(&daemon, "the cards are not in the profile cores");
    let problems = daemon.says()["problems"].to_string();
    assert!(!problems.contains("not repaired"), "{problems}");
    assert_eq!(server.machine.modes(), ["DPX/NPS1"; 2]);
    server.laid.run(&["partition", "reset"]).success();
    for _ in 0..4 {
        daemon.signal(nix::sys::signal::Signal::SIGHUP);
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    assert_eq!(server.machine.modes(), ["SPX/NPS1"; 2], "a reset is a person's choice, too");
    server.laid.run(&["partition", "set", "halves"]).success();
    drop(daemon);

    let state = server.laid.path("var/lib/rocworker/partition.json");
    let interrupted = std::fs::read_to_string(&state).unwrap().replace("\"succeeded\"", "\"draining\"");
    std::fs::write(&state, interrupted).unwrap();
    server.machine.change(|driver| driver.switch(0, Compute::Spx));
    let daemon = Running::begin(&server.laid);
    told(
        &daemon,
        "has not ended: it is at work, or was killed, and `rocworker partition set halves` finishes it",
    );
    assert_eq!(server.machine.modes(), ["SPX/NPS1", "DPX/NPS1"]);
}
