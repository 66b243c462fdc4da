//! kill -9 while packages come and go: of the program itself at calls that change the tree, and of dpkg. The next apply
//! or undo puts it right by dpkg's own means.

use crate::packages::worker::{CHILD, Order, Worker};
use lab::killed::{self, Death};
use lab::machine::Machine;
use lab::package::{Package, Script};
use lab::systems;
use support::killed::TREE;

fn tool() -> [Package; 2] {
    [
        Package::new("lab-tool", "1.0")
            .depends("lab-library")
            .file("/usr/share/lab-tool/is-here", "1.0\n")
            .conffile("/etc/lab-tool.conf", "a=1\n")
            .script(Script::Postinst, "#!/bin/sh\nset -e\ntouch /usr/share/lab-tool/is-configured\n")
            .script(Script::Prerm, "#!/bin/sh\nset -e\nrm -f /usr/share/lab-tool/is-configured\n"),
        Package::new("lab-library", "1.0").file("/usr/share/lab-library/is-here", "1.0\n"),
    ]
}

/// The machine before the runs, and the requests to apply and to undo.
struct Story {
    worker: Worker,
    before: Vec<String>,
    tree: support::tree::Tree,
    apply: Order,
    undo: Order,
}

/// Folders in which nothing may be left.
const TOPS: [&str; 4] = ["etc", "usr/share", "var/lib/apt/lists", "var/lib/rocworker"];

impl Story {
    fn on(machine: Machine) -> Self {
        let worker = Worker::new(machine, tool());
        worker.machine.apt_get(&["update"]).well();
        let apply = worker.order(&["install lab-tool"]);
        let undo = Order { lock: 60, ..Order::default() };
        // Once there and back, so that the folders of our own memory and of apt's are there.
        worker.run(&apply);
        worker.run(&undo);
        let (before, tree) = (worker.machine.packages(), worker.machine.tree(&TOPS));
        Self { worker, before, tree, apply, undo }
    }

    /// Checks that after everything was killed the next run completes the work.
    #[track_caller]
    fn goes_on(&self, nth: usize, when: &str) {
        if nth.is_multiple_of(2) {
            let ran = self.worker.run(&self.apply);
            assert!(
                ran.failed.is_empty() && ran.error.is_none() && ran.blocked.is_empty(),
                "{when}, then apply: {ran:#?}"
            );
            // dpkg must not keep the packages selected for removal, and apt must keep the library marked as
            // automatic.
            for name in ["lab-tool", "lab-library"] {
                let there = self.worker.machine.package(name);
                assert_eq!(there.as_deref(), Some("install ok installed 1.0"), "{when}, then apply: {name}");
            }
            let automatic = self.worker.machine.call(&["apt-mark", "showauto", "lab-tool", "lab-library"]);
            assert_eq!(automatic.well(), "lab-library\n", "{when}, then apply");
            assert!(self.worker.machine.text("/usr/share/lab-tool/is-configured").is_some(), "{when}");
            let again = self.worker.run(&self.apply);
            assert!(again.planned.is_empty(), "{when}, then apply twice: {again:#?}");
        }
        let ran = self.worker.run(&self.undo);
        assert!(ran.is_bare && ran.failed.is_empty() && ran.left.is_empty(), "{when}, then undo: {ran:#?}");
        let mut packages = self.worker.machine.packages();
        packages.retain(|it| !self.before.contains(it));
        assert!(packages.is_empty(), "{when}, then undo: {packages:?}");
        let off = self.worker.machine.tree(&TOPS).differences(&[&self.tree]);
        assert!(off.is_empty(), "{when}, then undo:\n{}", off.join("\n"));
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_run_that_is_killed_while_packages_come_or_go_is_ended_by_the_next() {
    // The smaller system: of the larger one, apt takes seconds to read what is there.
    let Some(machine) = systems::trixie() else { return };
    let story = Story::on(machine);
    for order in [&story.apply, &story.undo] {
        let is_undo = order.wanted.is_empty();
        let set = || {
            if is_undo {
                story.worker.run(&story.apply);
            }
        };
        set();
        let events = story.worker.run(order).heard;
        story.goes_on(1, "not killed");
        assert!(events > 8, "{events}");
        // A sample: each takes seconds of real apt. What it dies at differs between the two commands.
        let step = events / PROGRAM_POINTS;
        for (nth, at) in (usize::from(is_undo)..events).step_by(step).enumerate() {
            set();
            let when = format!(
                "{} killed when it was told for the {at}th time",
                if is_undo { "undo" } else { "apply" }
            );
            story.worker.tell(&Order { dies_at: Some(at), ..order.clone() });
            let output = story.worker.machine.call(&CHILD);
            assert!(output.status.code().is_none(), "{when}: it ended: {output:?}");
            // apt goes on by itself, and is waited for, or ends with it.
            if nth.is_multiple_of(2) {
                story.worker.machine.kill_all();
            }
            story.goes_on(nth / 2, &when);
        }
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_dpkg_that_is_killed_is_put_right_by_the_next_run() {
    // Other calls on the second system than on the first.
    for (skipped, (system, machine)) in systems::each().into_iter().enumerate() {
        let story = Story::on(machine);
        let mut interrupted = 0;
        for command in ["apply", "undo"] {
            let set = || {
                if command == "undo" {
                    story.worker.run(&story.apply);
                }
                story.worker.tell(if command == "apply" { &story.apply } else { &story.undo });
            };
            set();
            let (output, calls) = killed::dpkg_calls(&story.worker.machine, &CHILD, TREE);
            output.well();
            story.goes_on(1, "not killed");
            assert!(calls.len() > 20, "{system} {command}: {calls:?}");
            let step = calls.len() / POINTS;
            for (nth, at) in calls.iter().skip(skipped * step / 2).step_by(step).enumerate() {
                set();
                let death = if nth.is_multiple_of(3) { Death::Alone } else { Death::WithAll };
                let when = format!("{system}: {command}, dpkg killed {death:?} at {at:?}");
                killed::dpkg_killed_at(&story.worker.machine, &CHILD, at, death)
                    .unwrap_or_else(|| panic!("{when}: not made again"));
                interrupted += u32::from(story.worker.machine.packages() != story.before);
                story.worker.machine.kill_all();
                story.goes_on(nth, &when);
            }
        }
        assert!(interrupted > 0, "{system}: nothing was caught half way");
    }
}

/// At how many of dpkg's calls dpkg is killed, on each system; a run has about a hundred.
const POINTS: usize = 3;

/// At how many reports of progress the program is killed, of some dozens.
const PROGRAM_POINTS: usize = 8;
