//! A crash at every write of apply and of undo, from each start: in the test's own process, and then the next run.

use std::time::Instant;

use support::killed::is_temporary;
use support::real;
use support::tree::Tree;

use crate::setup::in_process;
use crate::setup::laid::Laid;
use crate::setup::program::Program;
use crate::setup::starting_states::{self, STARTS, Start};

/// rocworker's own memory may stay after an undo.
const OWN: &str = "var/lib/rocworker";

struct Harness {
    laid: Laid,
    program: Program,
    /// What it found, told all at once.
    wrong: Vec<String>,
    crashes: usize,
}

/// How a run ends that nobody kills.
struct Ends {
    /// After apply, without our own state.
    applied: Tree,
    /// With it.
    applied_all: Tree,
    /// After an apply and an undo, and after an undo alone: they differ where somebody has edited an owned file,
    /// which the one repairs and then takes back, and the other leaves.
    undone: [Tree; 2],
}

impl Harness {
    fn begin(start: Start) -> (Self, Tree) {
        let (laid, program) = (starting_states::machine(), Program::new());
        start(&laid, &program);
        let begun = laid.all();
        (Self { laid, program, wrong: Vec::new(), crashes: 0 }, begun)
    }

    fn run(&self, command: &str) -> String {
        in_process::run(&self.laid, &self.program, command)
    }

    /// The ends of unkilled runs, which must hold by themselves: a second apply does nothing.
    fn ends(&mut self, begun: &Tree) -> Ends {
        self.laid.put_back(begun);
        self.run("undo");
        let undone_alone = self.laid.tree();
        self.laid.put_back(begun);
        self.run("apply");
        let (applied, applied_all) = (self.laid.tree(), self.laid.all());
        self.same_again("apply", "unkilled");
        self.run("undo");
        let undone = self.laid.tree();
        self.same_again("undo", "unkilled");
        Ends { applied, applied_all, undone: [undone, undone_alone] }
    }

    fn same_again(&mut self, command: &str, when: &str) {
        let times = self.laid.times();
        let said = self.run(command);
        if self.laid.times() != times {
            self.wrong.push(format!("{when}: a second {command} writes: {said}"));
        }
    }

    fn expect(&mut self, when: &str, allowed: &[&Tree]) {
        let tree = self.laid.tree();
        let off = tree.differences(allowed);
        self.wrong.extend(off.into_iter().map(|line| format!("{when}: {line}")));
    }

    /// Lets a command crash at each of its writes. `then` is asked for each state that no earlier crash left.
    fn crash_each(&mut self, from: &Tree, command: &str, mut then: impl FnMut(&mut Self, &str, &Tree)) {
        self.laid.put_back(from);
        let crashes = in_process::crashes(&self.laid, &self.program, command);
        let changed = self.laid.all().differences(&[from]).len();
        assert!(
            crashes.points.len() > changed,
            "{command} has changed {changed} paths: {:?}",
            crashes.points
        );
        assert!(
            crashes.states.len() > changed,
            "{command} has changed {changed} paths: {:?}",
            crashes.points
        );
        for (point, left) in crashes.first_points() {
            self.crashes += 1;
            self.laid.put_back(left);
            then(self, &format!("{command} crashed at {} of {}", point.call, point.path.display()), left);
            if self.wrong.len() > 12 {
                return;
            }
        }
    }

    fn told(self, start: &str, began: Instant) {
        eprintln!("{start}: {} states after crashes, {:.1} s", self.crashes, began.elapsed().as_secs_f64());
        assert!(self.wrong.is_empty(), "{start}:\n{}", self.wrong.join("\n"));
    }
}

/// Each path is as it was or as it will be; a file that is being written stands beside it under another name.
fn whole(tree: &Tree, allowed: &[&Tree]) -> Vec<String> {
    let named: Vec<_> =
        tree.paths().filter(|path| is_temporary(path)).map(|it| it.display().to_string()).collect();
    let named: Vec<&str> = named.iter().map(String::as_str).chain([OWN]).collect();
    let allowed: Vec<Tree> = allowed.iter().map(|tree| (*tree).clone().without(&[OWN])).collect();
    tree.clone().without(&named).differences(&allowed.iter().collect::<Vec<_>>())
}

fn crash_apply(start: &str) {
    if !real::require_root(&[]) {
        return;
    }
    let began = Instant::now();
    let (_, lay) = STARTS.iter().find(|(name, _)| *name == start).unwrap();
    let (mut harness, begun) = Harness::begin(*lay);
    let ends = harness.ends(&begun);
    let before = begun.clone();
    harness.crash_each(&begun, "apply", |harness, when, left| {
        harness
            .wrong
            .extend(whole(left, &[&before, &ends.applied]).into_iter().map(|it| format!("{when}: {it}")));
        let said = harness.run("apply");
        harness.expect(&format!("{when}, then apply ({said})"), &[&ends.applied]);
        harness.same_again("apply", when);
        harness.run("undo");
        harness.expect(&format!("{when}, then apply and undo"), &[&ends.undone[0]]);
        harness.laid.put_back(left);
        let said = harness.run("undo");
        harness.expect(&format!("{when}, then undo ({said})"), &[&ends.undone[0], &ends.undone[1]]);
    });
    harness.told(start, began);
}

fn crash_undo(start: &str) {
    if !real::require_root(&[]) {
        return;
    }
    let began = Instant::now();
    let (_, lay) = STARTS.iter().find(|(name, _)| *name == start).unwrap();
    let (mut harness, begun) = Harness::begin(*lay);
    let ends = harness.ends(&begun);
    // From the start itself where the user's doing is what undo meets, else from an applied machine.
    let (from, undone) = match start {
        "changed-by-hand" | "edited-by-the-user-since" | "contested" | "killed-apply" => {
            (&begun, &ends.undone[1])
        }
        _ => (&ends.applied_all, &ends.undone[0]),
    };
    harness.crash_each(from, "undo", |harness, when, left| {
        harness.wrong.extend(whole(left, &[from, undone]).into_iter().map(|it| format!("{when}: {it}")));
        let said = harness.run("undo");
        harness.expect(&format!("{when}, then undo ({said})"), &[undone]);
        harness.same_again("undo", when);
        harness.laid.put_back(left);
        let said = harness.run("apply");
        harness.expect(&format!("{when}, then apply ({said})"), &[&ends.applied]);
    });
    harness.told(start, began);
}

macro_rules! starts {
    ($($(#[$slow:meta])? $apply:ident, $undo:ident: $start:literal;)*) => {
        $(
            #[test]
            $(#[$slow])?
            fn $apply() {
                crash_apply($start);
            }

            #[test]
            $(#[$slow])?
            fn $undo() {
                crash_undo($start);
            }
        )*
    };
}

starts! {
    real_apply_killed_where_nothing_is_there, real_undo_killed_where_nothing_was_there: "nothing-there";
    #[ignore = "cargo xtask test --all"]
    real_apply_killed_where_all_is_somebody_elses, real_undo_killed_where_all_was_somebody_elses: "all-there-by-somebody-else";
    #[ignore = "cargo xtask test --all"]
    real_apply_killed_over_an_older_one, real_undo_killed_after_two_applies: "older-config";
    #[ignore = "cargo xtask test --all"]
    real_apply_killed_while_the_gpu_is_turned_off, real_undo_killed_after_the_gpu_was_turned_off: "gpu-off";
    #[ignore = "cargo xtask test --all"]
    real_apply_killed_while_the_spec_moves, real_undo_killed_after_the_spec_moved: "cdi-path-changed";
    real_apply_killed_over_a_users_edits, real_undo_killed_over_a_users_edits: "edited-by-the-user-since";
    #[ignore = "cargo xtask test --all"]
    real_apply_killed_beside_their_file, real_undo_killed_beside_their_file: "their-file-in-our-folder";
    #[ignore = "cargo xtask test --all"]
    real_apply_killed_after_a_killed_one, real_undo_killed_after_a_killed_apply: "killed-apply";
    #[ignore = "cargo xtask test --all"]
    real_apply_killed_where_a_file_is_contested, real_undo_killed_where_a_file_is_contested: "contested";
    #[ignore = "cargo xtask test --all"]
    real_apply_killed_over_files_changed_by_hand, real_undo_killed_over_files_changed_by_hand: "changed-by-hand";
}
