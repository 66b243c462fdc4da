//! kill -9 while AMD's installer is at it: of the program, of dpkg beneath the installer, and of everything at once. The
//! next apply or undo puts it right.

use lab::killed::{self, Death, DpkgCall};
use lab::standins;
use lab::systems;
use support::killed::{Call, TREE};
use support::tree::Tree;

use crate::packages::real_installer::{configure, served};
use crate::packages::worker::{PROGRAM, Worker};

/// At how many of dpkg's calls, of some hundred, and of the program's own, of some dozens.
const POINTS: usize = 2;

/// What comes, and how it stands then.
const COME: [(&str, &str); 6] = [
    ("amdgpu-install", "install ok installed 6.3.60302-1"),
    ("rocm", "install ok installed 6.3.2"),
    ("rocminfo", "install ok installed 1.0.0"),
    ("rocm-smi-lib", "install ok installed 7.4.0"),
    ("amdgpu-graphics", "install ok installed 1:6.10.5"),
    ("lab-library", "install ok installed 1.0"),
];

/// Of these, what apt counts as come for the sake of the others.
const AUTOMATIC: &str = "lab-library\nrocm-smi-lib\nrocminfo\n";

struct Story {
    worker: Worker,
    packages: Vec<String>,
    tree: Tree,
}

impl Story {
    fn of(worker: Worker) -> Self {
        // Once there and back, so that the folders of our own memory and of apt's are there.
        worker.run(&["apply"]).well();
        worker.run(&["undo"]).well();
        let (packages, tree) = (worker.machine.packages(), tree(&worker));
        Self { worker, packages, tree }
    }

    fn set(&self, command: &str) {
        if command == "undo" {
            self.worker.run(&["apply"]).well();
        }
    }

    /// As it is with everything killed, the next run ends it.
    #[track_caller]
    fn goes_on(&self, apply_first: bool, when: &str) {
        let worker = &self.worker;
        if apply_first {
            let applied = worker.run(&["apply"]);
            assert!(applied.status.success(), "{when}, then apply: {applied:?}");
            for (name, status) in COME {
                assert_eq!(
                    worker.machine.package(name).as_deref(),
                    Some(status),
                    "{when}, then apply: {name}"
                );
            }
            let names = COME.map(|(name, _)| name);
            let automatic = worker.machine.call(&[&["apt-mark", "showauto"], &names[..]].concat()).well();
            assert_eq!(automatic, AUTOMATIC, "{when}, then apply");
            let again = worker.run(&["apply"]).well();
            assert!(again.ends_with("no changes.\n"), "{when}, then apply twice: {again}");
        }
        let undone = worker.run(&["undo"]);
        assert!(undone.status.success(), "{when}, then undo: {undone:?}");
        assert_eq!(worker.machine.packages(), self.packages, "{when}, then undo: {undone:?}");
        assert!(!worker.machine.outside(standins::ROCM).exists(), "{when}, then undo");
        let off = tree(worker).differences(&[&self.tree]);
        assert!(off.is_empty(), "{when}, then undo:\n{}", off.join("\n"));
    }
}

fn tree(worker: &Worker) -> Tree {
    worker.machine.tree(&["etc", "usr", "var/lib/apt/lists", "var/lib/dpkg/info", "var/cache/rocworker"])
}

fn some<T>(calls: &[T]) -> impl Iterator<Item = (usize, &T)> {
    calls.iter().step_by(calls.len() / POINTS).enumerate()
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_amdgpu_install_that_is_killed_is_put_right_by_the_next_run() {
    let Some(machine) = systems::trixie() else { return };
    let (worker, lines) = served(machine);
    configure(&worker, &format!("GPU_NODE: true\n{lines}"));
    let story = Story::of(worker);
    let machine = &story.worker.machine;
    for command in ["apply", "undo"] {
        let argv = [PROGRAM, command];
        story.set(command);
        let (said, calls): (_, Vec<DpkgCall>) = killed::dpkg_calls(machine, &argv, TREE);
        said.well();
        assert!(calls.len() > 20, "{command}: {calls:?}");
        story.goes_on(true, "not killed");
        for (nth, at) in some(&calls) {
            story.set(command);
            let death = if nth == 1 { Death::Alone } else { Death::WithAll };
            let when = format!("{command}, dpkg killed {death:?} at {at:?}");
            killed::dpkg_killed_at(machine, &argv, at, death)
                .unwrap_or_else(|| panic!("{when}: not made again"));
            machine.kill_all();
            story.goes_on(nth.is_multiple_of(2), &when);
        }
        story.set(command);
        let calls: Vec<Call> = killed::calls(machine, &argv, TREE);
        story.goes_on(false, "not killed");
        for (nth, at) in some(&calls) {
            story.set(command);
            let when = format!("{command}, killed at {at:?}");
            assert!(killed::killed_at(machine, &argv, at), "{when}: not made again");
            // Else apt goes on by itself, and is waited for, or ends with it.
            if nth.is_multiple_of(2) {
                machine.kill_all();
            }
            story.goes_on(!nth.is_multiple_of(2), &when);
        }
    }
}
