//! kill -9 of everything in the middle of a maintainer script: `dpkg --configure -a` ends an upgrade, the same removal
//! again ends a removal, and meanwhile nothing names what is not there.

use std::fs;

use support::killed::Call;
use support::real;

use crate::packages::debian::worker::{CONFIG, RECEIPT, RULES, Worker, on, same};

/// Stands where the program is installed, which dpkg has put beside (dpkg-divert(1)): what is in the plan happens when a
/// maintainer script calls it.
const PROGRAM: &str = r#"#!/bin/sh
real=/usr/bin/rocworker.real
[ "$1" = deb ] && [ -e /run/lab/plan ] || exec $real "$@"
. /run/lab/plan
case $WHEN in
    before) kill -KILL -1 ;;
    after) $real "$@"; kill -KILL -1 ;;
    traced) exec strace -qq -y -s 0 -e signal=none -e "trace=$CALLS" -o /run/lab/calls $real "$@" ;;
    at)
        strace -qq -o /dev/null -e "trace=$NAME" -e "inject=$NAME:signal=KILL:when=$NTH" $real "$@"
        [ $? -lt 128 ] || kill -KILL -1
        ;;
esac
"#;
/// What changes files, of which a few are enough, and more with `cargo xtask test --all`: which of rocworker's own writes
/// it is killed at is tests/it/setup's to go through.
const CALLS: &str = "renameat,renameat2,unlinkat,linkat,symlinkat";
const EVERY: [usize; 2] = [36, 9];

struct Harness(Worker);

impl Harness {
    fn plan(&self, plan: &str) {
        self.0.machine.put("/run/lab/plan", plan);
    }

    fn no_plan(&self) {
        fs::remove_file(self.0.machine.outside("/run/lab/plan")).unwrap();
    }

    /// The plans by which a run of dpkg is killed: before, after and at some calls of the program.
    fn plans(&self, argv: &[&str]) -> Vec<String> {
        self.plan(&format!("WHEN=traced\nCALLS={CALLS}\n"));
        self.0.dpkg(argv).well();
        self.no_plan();
        let trace = fs::read_to_string(self.0.machine.shared().join("calls")).unwrap();
        let calls = lab::killed::parse(&trace);
        assert!(calls.len() > 6, "{trace}");
        let at = |Call { name, nth, .. }: &Call| format!("WHEN=at\nNAME={name}\nNTH={nth}\n");
        let mut plans: Vec<String> =
            calls.iter().step_by(EVERY[usize::from(real::is_all())]).map(at).collect();
        plans.push(at(calls.last().unwrap()));
        plans.extend(["before", "after"].map(|when| format!("WHEN={when}\n")));
        plans
    }

    /// Runs dpkg, which does not come to its end; everything else dies with it.
    fn killed(&self, argv: &[&str], plan: &str) {
        self.plan(plan);
        let mut command = self.0.machine.command(&[&["dpkg"], argv].concat());
        let status =
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status().unwrap();
        assert!(!status.success(), "{plan}");
        self.0.machine.kill_all();
        self.no_plan();
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_killed_maintainer_scripts_are_ended_by_dpkg() {
    let Some(worker) = on("trixie") else { return };
    worker.install();
    worker.machine.put(CONFIG, "permissions: render\n");
    let divert = [
        "dpkg-divert",
        "--local",
        "--rename",
        "--divert",
        "/usr/bin/rocworker.real",
        "--add",
        "/usr/bin/rocworker",
    ];
    worker.machine.call(&divert).well();
    worker.machine.put_script("/usr/bin/rocworker", PROGRAM);
    let before = worker.written().without(&["var/lib/rocworker"]);
    let harness = Harness(worker);
    let worker = &harness.0;
    let package = worker.deb();

    // postinst, as an upgrade calls it, with something to be brought about.
    let upgrade = ["--install", package.as_str()];
    worker.apply();
    worker.machine.put(CONFIG, "permissions: open\n");
    let plans = harness.plans(&upgrade);
    for plan in plans {
        worker.machine.put(CONFIG, "permissions: render\n");
        worker.rocworker(&["apply"]).well();
        worker.machine.put(CONFIG, "permissions: open\n");
        harness.killed(&upgrade, &plan);
        worker.names_nothing_that_is_gone(&plan);
        worker.dpkg(&["--configure", "-a"]).well();
        worker.is_whole(&plan);
        assert!(worker.machine.text(RULES).unwrap().contains("0666"), "{plan}: it was applied again");
        worker.rocworker(&["status"]).well();
    }
    worker.rocworker(&["undo"]).well();

    // prerm.
    worker.machine.put(CONFIG, "permissions: render\n");
    for way in ["--remove", "--purge"] {
        worker.apply();
        let argv = [way, "rocworker"];
        let mut plans = harness.plans(&argv);
        if way == "--purge" {
            // A purge is a removal first, with a removal's calls.
            plans.retain(|plan| !plan.contains("NAME"));
        }
        for plan in plans {
            worker.install();
            worker.machine.put(CONFIG, "permissions: render\n");
            worker.apply();
            harness.killed(&argv, &plan);
            worker.names_nothing_that_is_gone(&plan);
            // A removal is no package's configuration: dpkg passes it over, and goes on with it when it is asked again.
            worker.dpkg(&["--configure", "-a"]).well();
            worker.dpkg(&argv).well();
            assert_eq!(worker.dpkg(&["--audit"]).well(), "", "{way}: {plan}");
            worker.names_nothing_that_is_gone(&plan);
            assert!(worker.machine.text(RECEIPT).is_none(), "{way}: {plan}");
        }
        worker.install();
        worker.machine.put(CONFIG, "permissions: render\n");
    }
    same(&worker.written().without(&["var/lib/rocworker"]), &before, "after all of it");
}
