//! Packages that were to go and are still there: what dpkg and apt keep of them is as it was.

use crate::packages::worker::{CHILD, Order, Worker};
use lab::package::Package;
use lab::{faulty, systems};

fn automatic(worker: &Worker, names: &[&str]) -> String {
    worker.machine.call(&[&["apt-mark", "showauto"], names].concat()).well()
}

#[test]
fn real_a_removal_that_fails_leaves_dpkg_and_apt_told_what_they_were() {
    for (system, machine) in systems::each() {
        let worker =
            Worker::new(machine, [faulty::stays("lab-stays", "not now").depends("lab-library"), library()]);
        worker.apply(&["install lab-stays"]);
        assert_eq!(automatic(&worker, &["lab-stays", "lab-library"]), "lab-library\n", "{system}");
        for _ in 0..2 {
            let ran = worker.undo();
            assert!(ran.failed.iter().any(|it| it.contains("lab-stays")), "{system}: {ran:#?}");
            for name in ["lab-stays", "lab-library"] {
                worker.has(name, Some("install ok installed 1.0"));
            }
            assert_eq!(automatic(&worker, &["lab-stays", "lab-library"]), "lab-library\n", "{system}");
        }
        // The package's maintainer has repaired the script.
        worker.machine.put_script("/var/lib/dpkg/info/lab-stays.prerm", "#!/bin/sh\n");
        let ran = worker.undo();
        assert!(ran.is_bare && ran.failed.is_empty(), "{system}: {ran:#?}");
        for name in ["lab-stays", "lab-library"] {
            worker.has(name, None);
        }
    }
}

#[test]
fn real_somebodys_package_that_a_killed_run_was_taking_away_is_given_back() {
    let Some(machine) = systems::trixie() else { return };
    let worker = Worker::new(machine, [Package::new("lab-tool", "1.0")]);
    worker.somebody_adds_a_source();
    worker.machine.apt_get(&["install", "lab-tool"]).well();
    let (absent, undo) = (worker.order(&["absent lab-tool"]), Order { lock: 60, ..Order::default() });
    let events = worker.run(&absent).heard;
    worker.has("lab-tool", None);
    assert!(worker.run(&undo).is_bare);
    for at in 0..events {
        worker.tell(&Order { dies_at: Some(at), ..absent.clone() });
        assert!(worker.machine.call(&CHILD).status.code().is_none(), "{at}: it ended");
        worker.machine.kill_all();
        let ran = worker.run(&undo);
        assert!(ran.is_bare && ran.failed.is_empty() && ran.left.is_empty(), "{at}: {ran:#?}");
        worker.has("lab-tool", Some("install ok installed 1.0"));
        assert!(worker.run(&undo).planned.is_empty(), "{at}");
    }
}

#[test]
fn real_somebodys_package_that_lacks_what_nobody_has_is_not_removed_to_put_dpkg_right() {
    for (system, machine) in systems::each() {
        let worker = Worker::new(machine, [Package::new("lab-tool", "1.0")]);
        let lacks = Package::new("lab-lacks", "1.0").depends("lab-nowhere").build(&worker.machine.shared());
        let half = Package::new("lab-half", "1.0").file("/usr/share/lab-half/is-here", "1.0\n");
        let half = half.build(&worker.machine.shared());
        let file = |package| worker.machine.shared_name(package);
        worker.apply(&["install lab-tool"]);
        worker.has("lab-tool", Some("install ok installed 1.0"));
        worker.machine.call(&["dpkg", "--unpack", &file(&lacks)]).well();
        let ran = worker.apply(&["install lab-tool", "install lab-other"]);
        let problem = "to put that right apt would change or install lab-lacks, which is not configured";
        assert!(ran.failed.len() == 1 && ran.failed[0].contains(problem), "{system}: {ran:#?}");
        worker.has("lab-lacks", Some("install ok unpacked 1.0"));
        // The package to remove is removed, and no other.
        let undone = worker.undo();
        assert!(undone.is_bare && undone.failed.is_empty(), "{system}: {undone:#?}");
        worker.has("lab-tool", None);
        worker.has("lab-lacks", Some("install ok unpacked 1.0"));
        worker.machine.call(&["dpkg", "--purge", "lab-lacks"]).well();

        // A removal of somebody's was killed: apt would end it with whatever it does next.
        worker.apply(&["install lab-tool"]);
        worker.machine.call(&["dpkg", "--install", &file(&half)]).well();
        let status = worker.machine.text("/var/lib/dpkg/status").unwrap();
        let (is, was) = (
            "Package: lab-half\nStatus: deinstall ok half-installed",
            "Package: lab-half\nStatus: install ok installed",
        );
        assert!(status.contains(was), "{system}");
        worker.machine.put("/var/lib/dpkg/status", status.replace(was, is));
        let ran = worker.apply(&["install lab-tool", "install lab-other"]);
        assert_eq!(ran.failed.len(), 1, "{system}: {ran:#?}");
        let undone = worker.undo();
        assert!(undone.is_bare && undone.failed.is_empty(), "{system}: {undone:#?}");
        worker.has("lab-tool", None);
        worker.has("lab-half", Some("deinstall ok half-installed 1.0"));
        assert!(worker.machine.text("/usr/share/lab-half/is-here").is_some(), "{system}");
    }
}

fn library() -> Package {
    Package::new("lab-library", "1.0")
}
