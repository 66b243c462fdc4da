//! `rocworker --host gpu1 top`, live.

use std::process::Stdio;

use layout::Machine as Laid;
use support::machines::{self, Fleet};
use support::real;

use crate::fleet::asker::{PROGRAM, install};

/// Runs top on a terminal of 100 columns, ends it after two seconds by a shell's command whose output is typed, and returns all
/// that the terminal got.
fn watched_until(fleet: &Fleet, end: &str) -> String {
    let script = format!(
        "(sleep 2; {end}) | TERM=xterm COLUMNS=100 LINES=40 script -qec 'stty cols 100 rows 40; {PROGRAM} --host gpu1 top' \
         /dev/null"
    );
    let mut command = fleet.command(&["sh", "-ec", &script]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn watched(fleet: &Fleet) -> String {
    watched_until(fleet, "printf q")
}

#[test]
fn real_top_watches_another_machine_and_ends_with_its_connection() {
    if !machines::require() || !real::require(&["script"]) {
        return;
    }
    let fleet = Fleet::new();
    let gpu1 = fleet.machine("gpu1", |m| m.laid(Laid::instinct_with_readings(2, 1)).prepare(&install()));
    let said = watched(&fleet);
    assert!(said.contains("431/740 W") && said.contains("\u{1b}[?1049l"), "{said}");

    let said = watched_until(&fleet, "pkill -TERM -o -x rocworker");
    assert!(said.contains("431/740 W") && said.contains("\u{1b}[?1049l"), "{said}");

    // A rocworker that answers with something else, and one that ends.
    let fake = |what: &str| {
        gpu1.shell(&format!(
            "rm /usr/local/bin/rocworker
             printf '%s\\n' '#!/bin/sh' 'case $* in --version) echo rocworker {}; exit;; esac' 'read line; {what}' \
             > /usr/local/bin/rocworker; chmod 755 /usr/local/bin/rocworker",
            env!("CARGO_PKG_VERSION")
        ))
        .well();
    };
    fake("printf \"\\033]0;title\\007\\n\"; cat > /dev/null");
    let said = watched(&fleet);
    assert!(said.contains("gpu1 sent no snapshot") && !said.contains("]0;title"), "{said}");
    fake("yes 0 | sed s/0/{}/");
    let said = watched_until(&fleet, "sleep 4; printf q");
    assert!(said.contains("more snapshots than rocworker asked for"), "{said}");
    fake("echo gone >&2; exit 7");
    let said = watched(&fleet);
    assert!(said.contains("gpu1: rocworker there ended with code 7: gone"), "{said}");
    let said = fleet.run(&[PROGRAM, "--host", "gpu1", "top"]).badly();
    assert!(said.contains("say `rocworker top --once`"), "{said}");
}
