//! rocworker killed on the machine, as a machine that loses its power kills it.

use support::machines::Machine;
use support::real;

use crate::remote::asker::{Asker, PROGRAM, has_the_tree, is_as_before, tree};

/// The kernel's calls before which a run is killed: those that move and remove files, make folders and start programs.
const CALLS: [&str; 4] = ["renameat2", "unlinkat", "mkdirat", "clone"];

/// Every so many calls of a name.
const SAMPLE: usize = 3;

const LOG: &str = "/run/strace";

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_run_that_is_killed_at_any_step_is_finished_by_the_next() {
    let Some(asker) = Asker::new() else { return };
    if !real::require(&["strace"]) {
        return;
    }
    let gpu1 = asker.machine("gpu1", |m| m);
    gpu1.put("etc/rocworker/config.yaml", "# ours\n");
    gpu1.put("etc/rocworker/templates/README", "mine\n");
    gpu1.put("etc/systemd/system/rocm-exporter.service", "[Service]\nExecStart=/usr/bin/sleep infinity\n");
    gpu1.shell("systemctl daemon-reload; systemctl start rocm-exporter").well();
    let deb = asker.put_package(&gpu1, asker.package());
    let sum = gpu1.shell(&format!("sha256sum {deb} | cut -c 1-64")).well();
    let install = format!("{PROGRAM} exporter install --replace --package {} < {deb}", sum.trim());
    let uninstall = format!("{PROGRAM} exporter uninstall");
    let before = tree(&gpu1);
    let mut kills = 0;
    let both = [(&install, None), (&uninstall, Some(&install))];
    for (command, first) in both {
        let begin = || {
            if let Some(first) = first {
                gpu1.shell(first).well();
            }
        };
        begin();
        let made = calls(&gpu1, command);
        gpu1.shell(&uninstall).well();
        for (call, count) in CALLS.iter().zip(made) {
            for nth in (1..=count).step_by(SAMPLE) {
                begin();
                killed(&gpu1, command, call, nth);
                // What the next run is takes turns.
                if kills % 2 == 0 {
                    gpu1.shell(&install).well();
                }
                gpu1.shell(&uninstall).well();
                eprintln!("{call} {nth} of {count}: {command}");
                is_as_before(&gpu1, &before);
                kills += 1;
            }
        }
    }
    assert!(kills > 20, "{kills} kills");
    assert_eq!(gpu1.shell("systemctl is-active rocm-exporter").well(), "active\n");
    has_the_tree(&gpu1, &before);
}

/// How often a command makes each of [`CALLS`].
fn calls(machine: &Machine<'_>, command: &str) -> [usize; 4] {
    machine
        .shell(&format!("strace -qq -e signal=none -e trace={} -o {LOG} {command}", CALLS.join(",")))
        .well();
    let log = std::fs::read_to_string(machine.path(LOG)).unwrap();
    CALLS.map(|call| log.lines().filter(|line| line.starts_with(&format!("{call}("))).count())
}

fn killed(machine: &Machine<'_>, command: &str, call: &str, nth: usize) {
    let inject = format!("inject={call}:signal=KILL:when={nth}");
    let said =
        machine.shell(&format!("strace -qq -o {LOG} -e trace={call} -e {inject} {command} || echo $?"));
    assert_eq!(said.stdout.lines().next_back(), Some("137"), "{call} {nth}: {said:?}");
}
