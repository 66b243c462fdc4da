//! `partition set` and `reset` beneath a root, by writes that the driver takes or refuses.

use nix::errno::Errno;
use support::fuse::{self, Fault};
use support::partitioned::Driver;

use super::machine::{answer, refused, run, served};

const MODES: &str = "current_compute_partition";

#[test]
fn real_writes_switch_each_card_once_and_a_second_set_writes_nothing() {
    if !fuse::require() {
        return;
    }
    let machine = served(2);
    let said = answer(machine.root(), "partition set cores");
    assert_eq!((&said["changed"], &said["switch"]["phase"]), (&true.into(), &"succeeded".into()));
    assert_eq!(machine.modes(), ["CPX/NPS1"; 2]);
    assert_eq!(machine.log(), ["0000:05:00.0", "0000:15:00.0"].map(|card| format!("{card} {MODES} CPX")));
    let said = answer(machine.root(), "partition set cores");
    assert_eq!(said["changed"], false);
    assert_eq!(machine.log(), [""; 0]);
    // The history and undo know the switch.
    let history = answer(machine.root(), "history").to_string();
    assert!(history.contains("partition set") && history.contains(MODES), "{history}");
    let output = run(machine.root(), "undo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(machine.modes(), ["SPX/NPS1"; 2]);
}

#[test]
fn real_reset_restores_what_each_card_had_before_the_first_switch() {
    if !fuse::require() {
        return;
    }
    let machine = served(2);
    machine.change(|driver| driver.cards[1].compute = inventory::partitioning::Compute::Dpx);
    for profile in ["cores", "one", "cores"] {
        answer(machine.root(), &format!("partition set {profile}"));
    }
    assert_eq!(machine.modes(), ["CPX/NPS1"; 2]);
    answer(machine.root(), "partition reset");
    assert_eq!(machine.modes(), ["SPX/NPS1", "DPX/NPS1"]);
    let (code, stderr) = refused(machine.root(), "partition reset");
    assert_eq!(code, Some(2));
    assert!(stderr.contains("rocworker has switched no card since this boot"), "{stderr}");
}

#[test]
fn real_errors_of_the_driver_are_a_sentence_with_what_to_do_and_what_is_true() {
    if !fuse::require() {
        return;
    }
    type Fault = fn(&mut Driver);
    let faults: [(Fault, &str); 6] = [
        (
            |driver| driver.processes.push(4711),
            "after 0 s these processes are still on the cards: a process (pid 4711)",
        ),
        (|driver| driver.cards[0].is_in_reset = true, "the card is being reset: wait for the end"),
        (|driver| driver.cards[0].loses_kfd = true, "KFD did not come back after the switch"),
        (
            |driver| driver.cards[0].refuses = true,
            "the driver does not take this mode under the card's memory mode: `rocworker partition show`",
        ),
        (|driver| driver.cards[0].ignores = true, "the kernel took CPX and the file says SPX"),
        (|driver| driver.cards[0].is_virtual = true, "root may not write current_compute_partition"),
    ];
    for (fault, expected) in faults {
        let machine = served(2);
        machine.change(fault);
        let (code, stderr) = refused(machine.root(), "partition set cores --wait 0");
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains(expected), "{expected}: {stderr}");
        if expected.starts_with("after") || expected.starts_with("root may not") {
            assert!(stderr.contains("nothing was changed"), "{stderr}");
        } else {
            assert!(stderr.contains("now: 0000:05:00.0 SPX/NPS1, 0000:15:00.0 "), "{stderr}");
        }
        assert_eq!(machine.modes()[0], "SPX/NPS1");
    }
}

#[test]
fn real_a_memory_mode_waits_for_a_reload_that_somebody_asks_for() {
    if !fuse::require() {
        return;
    }
    let machine = served(2);
    let (code, stderr) = refused(machine.root(), "partition set quarters");
    assert_eq!(code, Some(1));
    assert!(stderr.contains("changes a memory mode") && stderr.contains("give --reload"), "{stderr}");
    assert_eq!(machine.log(), [""; 0]);
}

#[test]
fn real_a_set_changes_nothing_where_a_read_fails() {
    if !fuse::require() {
        return;
    }
    let machine = served(2);
    let card = "/bus/pci/devices/0000:15:00.0";
    for (file, expected) in [
        ("/class/kfd/kfd/topology/nodes/3/properties".to_owned(), "not every GPU could be read"),
        (format!("{card}/current_compute_partition"), "0000:15:00.0"),
        (format!("{card}/available_compute_partition"), "0000:15:00.0"),
        ("/class/kfd/kfd/proc".to_owned(), "which processes use the GPUs is not known"),
    ] {
        machine.change(|driver| driver.processes.push(4711));
        machine.served().fault(&file, Fault::Errno(Errno::EIO));
        let (code, stderr) = refused(machine.root(), "partition set cores --wait 0");
        machine.served().mend();
        machine.change(|driver| driver.processes.clear());
        assert_eq!(code, Some(1), "{file}: {stderr}");
        assert!(stderr.contains("nothing was changed") && stderr.contains(expected), "{file}: {stderr}");
        assert_eq!((machine.modes(), machine.log()), (vec!["SPX/NPS1".to_owned(); 2], Vec::new()), "{file}");
    }
}
