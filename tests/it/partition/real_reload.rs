//! `partition set` on a whole stage: the driver is loaded again by a stand-in for modprobe, and units stop and start by one for
//! systemctl. /sys is a synthetic driver's.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use inventory::partitioning::Compute;
use support::partitioned::{Driver, Partitioned};
use support::stage::Stage;
use support::{fuse, real};

use super::machine::{PROFILES, ROCWORKER};

const MODPROBE: &str = "#!/bin/sh
case $1 in --remove) verb=remove ;; *) verb=load ;; esac
# Where a test asks for it, the caller dies between the two.
if [ $verb = load ] && [ -e /run/killme ]; then rm /run/killme; kill -9 $PPID; exit; fi
echo $verb > /sys/module/rocworker_test/modprobe
";

/// Units are files of a folder: one that is there runs.
const SYSTEMCTL: &str = "#!/bin/sh
units=UNITS
for unit in \"$@\"; do :; done
case $1 in
show) if [ -e $units/$unit ]; then echo ActiveState=active; else echo ActiveState=inactive; fi ;;
stop) rm -f $units/$unit && echo \"stop $unit\" >> $units/../log ;;
start) [ ! -e $units/../fails/$unit ] || exit 1; touch $units/$unit && echo \"start $unit\" >> $units/../log ;;
esac
";

struct Server {
    machine: Partitioned,
    stage: Stage,
}

impl Server {
    fn new(driver: Driver, config: &str) -> Self {
        let stage = Stage::set(&driver.machine());
        let units = stage.folder().join("units");
        std::fs::create_dir(&units).unwrap();
        std::fs::create_dir(stage.folder().join("fails")).unwrap();
        std::fs::write(units.join("vllm.service"), "").unwrap();
        let systemctl = SYSTEMCTL.replace("UNITS", units.to_str().unwrap());
        for (name, text) in [("modprobe", MODPROBE), ("systemctl", &systemctl)] {
            for folder in ["usr/sbin", "usr/bin"] {
                let file = stage.put(&format!("{folder}/{name}"), text);
                std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        stage.put("etc/rocworker/config.yaml", config);
        let machine = Partitioned::at(&stage.machine(), driver);
        Self { machine, stage }
    }

    /// Three cards, of which the third is in no hive and in DPX. The profile `most` brings the other two into a compute
    /// mode and NPS4.
    fn with_skipped_card(compute: &str, more: &str) -> Self {
        let mut driver = Driver::new(3);
        driver.cards[2].hive = 0;
        driver.cards[2].compute = Compute::Dpx;
        let most = format!(
            "[{{cards: all, compute: {compute}, memory: NPS4}}, {{cards: \"0000:25:00.0\", skip: true}}]"
        );
        Self::new(driver, &format!("{PROFILES}    most: {most}\n{more}"))
    }

    fn run(&self, line: &str) -> Output {
        let argv: Vec<&str> = [ROCWORKER].into_iter().chain(line.split(' ')).collect();
        self.stage.run(&argv)
    }

    /// Commands of one machine, one after the other: what each leaves in /var/lib the next one finds.
    fn shell(&self, script: &str) -> String {
        let output = self.stage.shell(&script.replace("rocworker ", &format!("{ROCWORKER} ")));
        succeeds(&output)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.stage.folder().join("log")).unwrap_or_default()
    }
}

#[track_caller]
fn succeeds(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

fn require() -> bool {
    fuse::require() && real::require_root_and(true, "")
}

#[test]
fn real_units_stop_memory_comes_before_the_reload_and_skipped_cards_get_their_modes_again() {
    if !require() {
        return;
    }
    let server = Server::with_skipped_card("QPX", "  units: [vllm.service, absent.service]\n");
    let said = succeeds(&server.run("partition set most --reload"));
    assert_eq!(server.machine.modes(), ["QPX/NPS4", "QPX/NPS4", "DPX/NPS1"], "{said}");
    assert_eq!(server.log(), "stop vllm.service\nstart vllm.service\n", "{said}");
    let written = server.machine.log();
    let expected = [
        "0000:05:00.0 current_memory_partition NPS4",
        "0000:15:00.0 current_memory_partition NPS4",
        "modprobe remove",
        "modprobe load",
        "0000:05:00.0 current_compute_partition QPX",
        "0000:15:00.0 current_compute_partition QPX",
        "0000:25:00.0 current_compute_partition DPX",
    ];
    assert_eq!(written, expected, "{said}");
}

#[test]
fn real_a_reload_that_fails_says_what_is_true_and_starts_the_units_again() {
    if !require() {
        return;
    }
    let mut driver = Driver::new(2);
    driver.fails_to_load = true;
    let server = Server::new(driver, &format!("{PROFILES}  units: [vllm.service]\n"));
    let output = server.run("partition set quarters --reload");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the driver is unloaded and cannot be loaded: journalctl -k says why"), "{said}");
    assert!(said.contains("now amdgpu drives no card"), "{said}");
    assert_eq!(server.log(), "stop vllm.service\nstart vllm.service\n", "{said}");
}

#[test]
fn real_a_memory_mode_that_the_firmware_does_not_take_is_read_back() {
    if !require() {
        return;
    }
    let mut driver = Driver::new(2);
    driver.cards.iter_mut().for_each(|card| card.keeps_memory = true);
    let server = Server::new(driver, PROFILES);
    let output = server.run("partition set quarters --reload");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected = "0000:15:00.0 is in NPS1, not in NPS4; journalctl -k may say why";
    assert!(said.contains("read back, the modes differ") && said.contains(expected), "{said}");
    assert!(!said.contains("is requested"), "{said}");
}

#[test]
fn real_a_process_that_does_not_leave_keeps_the_driver_and_the_units_start_again() {
    if !require() {
        return;
    }
    let mut driver = Driver::new(2);
    driver.processes.push(std::process::id());
    let server = Server::new(driver, &format!("{PROFILES}  units: [vllm.service]\n"));
    let output = server.run("partition set quarters --reload --wait 0");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let own = format!("(pid {}", std::process::id());
    assert!(
        said.contains("after 0 s these processes are still on the cards") && said.contains(&own),
        "{said}"
    );
    assert_eq!(server.machine.modes(), ["SPX/NPS1"; 2], "{said}");
    assert_eq!(server.log(), "stop vllm.service\nstart vllm.service\n", "{said}");
}

#[test]
fn real_a_boot_reaches_a_memory_mode_where_the_configuration_lets_it_load_the_driver() {
    if !require() {
        return;
    }
    let of_machine = "  profile: quarters\n  reload: boot\n";
    let server = Server::new(Driver::new(2), &format!("{PROFILES}{of_machine}"));
    let said = succeeds(&server.run("boot-partitions"));
    assert_eq!(server.machine.modes(), ["CPX/NPS4"; 2], "{said}");
    // No mode survives the next start.
    server.machine.change(Driver::reboot);
    let said = succeeds(&server.run("boot-partitions"));
    assert_eq!(server.machine.modes(), ["CPX/NPS4"; 2], "{said}");
    server.machine.log();
    succeeds(&server.run("boot-partitions"));
    assert_eq!(server.machine.log(), [""; 0]);
}

#[test]
fn real_a_reset_restores_modes_across_a_load_that_picked_others() {
    if !require() {
        return;
    }
    let server = Server::with_skipped_card("CPX", "");
    let said = server.shell("rocworker partition set most --reload; rocworker partition reset --reload");
    assert_eq!(server.machine.modes(), ["SPX/NPS1", "SPX/NPS1", "DPX/NPS1"], "{said}");
}

/// An undo of the machine leaves the modes that a card had before the driver was loaded again.
#[test]
fn real_an_undo_leaves_a_skipped_card_in_the_mode_that_it_had() {
    if !require() {
        return;
    }
    let server = Server::with_skipped_card("CPX", "");
    let said = server.shell("rocworker partition set most --reload; rocworker undo || true");
    assert_eq!(server.machine.modes(), ["CPX/NPS4", "CPX/NPS4", "DPX/NPS1"], "{said}");
}

#[test]
fn real_a_second_switch_that_fails_still_knows_the_mode_of_a_skipped_card() {
    if !require() {
        return;
    }
    let server = Server::with_skipped_card("QPX", "");
    // The second one loads the driver, which picks modes, and fails because of a process.
    let said = server.shell(
        "touch /run/killme; if rocworker partition set most --reload; then exit 9; fi
         echo hold > /sys/module/rocworker_test/modprobe
         if rocworker partition set most --wait 0; then exit 9; fi
         echo release > /sys/module/rocworker_test/modprobe
         rocworker partition set most",
    );
    assert_eq!(server.machine.modes(), ["QPX/NPS4", "QPX/NPS4", "DPX/NPS1"], "{said}");
}

/// A switch that has not ended leaves units stopped, or the machine without its driver.
#[test]
fn real_an_undo_clears_up_behind_a_switch_that_was_killed() {
    if !require() {
        return;
    }
    let server = Server::new(Driver::new(2), &format!("{PROFILES}  units: [vllm.service]\n"));
    let said = server.shell(
        "touch /run/killme; if rocworker partition set quarters --reload; then exit 9; fi
         rocworker undo || true; test ! -e /var/lib/rocworker/partition.json",
    );
    assert!(said.contains("vllm.service was started again"), "{said}");
    assert_eq!(server.machine.modes(), ["CPX/NPS4"; 2], "{said}");
    assert_eq!(server.log(), "stop vllm.service\nstart vllm.service\n", "{said}");
}

#[test]
fn real_a_refused_switch_names_the_units_that_a_killed_one_has_stopped() {
    if !require() {
        return;
    }
    let server = Server::new(Driver::new(2), &format!("{PROFILES}  units: [vllm.service]\n"));
    let said = server.shell(
        "touch /run/killme; if rocworker partition set quarters --reload; then exit 9; fi
         if rocworker partition set absent; then exit 9; fi
         if rocworker partition set whole; then exit 9; fi
         rocworker status || true",
    );
    assert!(said.contains("the last switch has stopped units: systemctl start vllm.service"), "{said}");
}

#[test]
fn real_processes_that_do_not_leave_are_killed_where_that_is_asked_for() {
    if !require() {
        return;
    }
    let mut sleeper = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let mut driver = Driver::new(1);
    driver.processes.push(sleeper.id());
    let server = Server::new(driver, PROFILES);
    std::thread::scope(|scope| {
        let set = scope.spawn(|| succeeds(&server.run("partition set cores --wait 0 --kill")));
        sleeper.wait().unwrap();
        server.machine.change(|driver| driver.processes.clear());
        let said = set.join().unwrap();
        assert!(
            said.contains(&format!("sleep (pid {}", sleeper.id())) && said.contains("got SIGTERM"),
            "{said}"
        );
    });
    assert_eq!(server.machine.modes(), ["CPX/NPS1"]);
}

/// The driver is unloaded, and whoever is to load it again dies.
#[test]
fn real_a_switch_that_dies_without_a_driver_is_finished_or_taken_back() {
    if !require() {
        return;
    }
    for (next, modes) in [("set quarters --reload", ["CPX/NPS4"; 2]), ("reset --reload", ["SPX/NPS1"; 2])] {
        let server = Server::new(Driver::new(2), &format!("{PROFILES}  units: [vllm.service]\n"));
        let said = server.shell(&format!(
            "touch /run/killme; if rocworker partition set quarters --reload; then exit 9; fi
             rocworker partition {next}"
        ));
        assert_eq!(server.machine.modes(), modes, "{next}: {said}");
        assert_eq!(server.log(), "stop vllm.service\nstart vllm.service\n", "{said}");
    }
}

#[test]
fn real_each_unit_that_ran_is_started_again_whatever_came_of_the_others() {
    if !require() {
        return;
    }
    let server = Server::new(Driver::new(1), &format!("{PROFILES}  units: [vllm.service, web.service]\n"));
    std::fs::write(server.stage.folder().join("units/web.service"), "").unwrap();
    let fails = server.stage.folder().join("fails/vllm.service");
    std::fs::write(&fails, "").unwrap();
    let fails = fails.display();
    let said = server.shell(&format!(
        "if rocworker partition set cores; then exit 9; fi; rm {fails}; rocworker partition set cores"
    ));
    assert!(said.contains("vllm.service ran before, and does not start"), "{said}");
    assert_eq!(server.machine.modes(), ["CPX/NPS1"], "{said}");
    let log = "stop vllm.service\nstop web.service\nstart web.service\nstart vllm.service\n";
    assert_eq!(server.log(), log, "{said}");
}
