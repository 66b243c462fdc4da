//! What happens after a script has begun.

use std::thread;
use std::time::{Duration, Instant};

use fleet::ssh::Error;
use support::machines::{self, Fleet, Machine};
use support::waiting::eventually;

use crate::fleet::asker::{Asker, SOON};

/// Says that it runs, answers a part, and does not end.
const ENDLESS: &str = "echo begun >> /root/begun; echo a part; sleep 600";

/// Runs the endless script on gpu1, and does this to the machine once it runs. It has run once in the end.
fn interrupted(fleet: &Fleet, gpu1: &Machine<'_>, how: impl FnOnce()) -> (Error, Duration) {
    let asker = Asker::of(fleet);
    let begun = gpu1.path("root/begun");
    let (error, took) = thread::scope(|scope| {
        let asked = scope.spawn(|| asker.run("gpu1", ENDLESS).unwrap_err());
        eventually("the script runs", || begun.exists());
        let before = Instant::now();
        how();
        (asked.join().unwrap(), before.elapsed())
    });
    assert_eq!(std::fs::read_to_string(&begun).unwrap(), "begun\n", "it ran again");
    (error, took)
}

#[test]
fn real_a_machine_whose_sshd_dies_in_the_middle_is_lost_and_the_script_is_not_run_again() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let gpu1 = fleet.machine("gpu1", |machine| machine);
    let (error, _) = interrupted(&fleet, &gpu1, || gpu1.kill_sshd());
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    let said = error.to_string();
    assert!(said.starts_with("gpu1: connection lost while the command ran: "), "{said}");
    assert!(said.ends_with("; check that the machine is up, then run the command again"), "{said}");
}

#[test]
fn real_a_machine_that_falls_silent_in_the_middle_is_noticed() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    // Three of a second each, in place of 10 s each.
    let soon = Duration::from_secs(20);
    let gpu1 = fleet.machine("gpu1", |machine| machine);
    let (error, took) = interrupted(&fleet, &gpu1, || {
        gpu1.shell("kill -STOP $(pidof sshd)").well();
    });
    assert!(matches!(error, Error::Lost { .. }) && took < soon, "{took:?}: {error}");
    eprintln!("stopped: {error} after {took:?}");
    gpu1.shell("kill -CONT $(pidof sshd); rm /root/begun").well();
    let (error, took) = interrupted(&fleet, &gpu1, || gpu1.cut_off());
    assert!(matches!(error, Error::Lost { .. }) && took < soon, "{took:?}: {error}");
    eprintln!("cut off: {error} after {took:?}");
}

#[test]
fn real_a_script_has_an_end_and_an_answer_has_a_size() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let gpu1 = fleet.machine("gpu1", |machine| machine);
    let asker = Asker::of(&fleet);
    let limit = Duration::from_secs(3);
    let error = asker.run_within("gpu1", "echo a part; sleep 600", limit, SOON).unwrap_err();
    assert_eq!(error.to_string(), "gpu1: the command did not finish within 3 s: log in and find what hangs");
    eventually("ssh has ended", || fleet.shell("! pgrep -x ssh").status.success());
    let error = asker.run("gpu1", "cat /dev/zero").unwrap_err();
    assert_eq!(
        error.to_string(),
        "gpu1: its answer is larger than 64 MiB, and the connection was closed: log in and run the command there"
    );
    // Nothing is written there.
    gpu1.fill_disk();
    assert_eq!(asker.run("gpu1", "echo there").unwrap().stdout, b"there\n");
}
