//! Faults around an installation: locks, disks, servers, keys, with real apt and dpkg.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::packages::worker::{CHILD, Order, Ran, SOURCE, Worker};
use lab::key::Key;
use lab::lock::Holder;
use lab::package::Package;
use lab::repository::path_of;
use lab::server::{Misbehaviour, Server, nobody};
use lab::{faulty, systems};

fn tool() -> Package {
    Package::new("lab-tool", "1.0").file("/usr/share/lab-tool/is-here", "1.0\n").weight(300_000)
}

/// Checks that no package was installed, that everything else was done, and that the machine can be reverted
/// or completed.
#[track_caller]
fn failed_and_comes_later(worker: &Worker, ran: &Ran, problem: &str, when: &str) {
    assert_eq!(ran.failed.len(), 1, "{when}: {ran:#?}");
    assert!(ran.failed[0].contains(problem), "{when}: {ran:#?}");
    assert!(worker.machine.text(SOURCE).is_some(), "{when}: what needs no package is done");
    worker.has("lab-tool", None);
    worker.server.behave();
    let ran = worker.apply(&["install lab-tool"]);
    assert!(ran.failed.is_empty(), "{when}: {ran:#?}");
    worker.has("lab-tool", Some("install ok installed 1.0"));
    let undone = worker.undo();
    assert!(undone.is_bare && undone.failed.is_empty() && undone.left.is_empty(), "{when}: {undone:#?}");
    worker.has("lab-tool", None);
    let lists = worker.machine.tree(&["var/lib/apt/lists"]);
    let lists: Vec<_> = lists.paths().filter(|path| path.to_str().unwrap().contains("dists")).collect();
    assert!(lists.is_empty(), "{when}: {lists:?}");
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_server_that_does_not_answer_as_it_should_keeps_the_package_away_and_nothing_else() {
    for (system, machine) in systems::each() {
        let worker = Worker::new(machine, [tool()]);
        let index = worker.repository.path_of_index();
        let release = worker.repository.path_of("InRelease");
        let package = path_of(&tool());
        for (path, how, problem) in [
            (&release, Misbehaviour::Close, "could not be read: apt: Failed to fetch"),
            (&release, Misbehaviour::Hang, "could not be read: apt: Failed to fetch"),
            (&release, Misbehaviour::Cut(200), "could not be read: apt: "),
            (
                &release,
                Misbehaviour::Other(b"<html>Sign in to this network</html>\n".to_vec()),
                "could not be read: apt: ",
            ),
            (&release, Misbehaviour::Status(500), "could not be read: apt: "),
            (&index, Misbehaviour::Status(404), "could not be read: apt: "),
            (&index, Misbehaviour::Other(b"Package: lab-tool\n".to_vec()), "could not be read: apt: "),
            (&package, Misbehaviour::Status(404), "apt: Failed to fetch"),
            (&package, Misbehaviour::Stall(1000), "apt: Failed to fetch"),
            (&package, Misbehaviour::Cut(1000), "apt: Failed to fetch"),
            (&package, Misbehaviour::Other(b"not this one".to_vec()), "apt: Failed to fetch"),
        ] {
            worker.server.misbehave(path, how.clone());
            let ran = worker.apply(&["install lab-tool"]);
            failed_and_comes_later(&worker, &ran, problem, &format!("{system}: {path} {how:?}"));
        }
    }
}

#[test]
fn real_a_machine_without_a_network_is_told_what_is_missing() {
    for (system, machine) in systems::each() {
        let worker = Worker::new(machine, [tool()]);
        let mut order = worker.order(&["install lab-tool"]);
        order.repository.as_mut().unwrap().url = format!("http://{}", nobody().trim_start_matches("http://"));
        let ran = worker.run(&order);
        assert!(
            ran.failed[0].starts_with("package:lab-tool: apt: Unable to locate package lab-tool"),
            "{system}: {ran:#?}"
        );
        assert!(ran.failed[0].contains("see that http://127.0.0.1:"), "{system}: {ran:#?}");
        // The repository is tried once.
        let failed = ran.effects.iter().filter(|it| it.starts_with("Failed: what /etc/apt/")).count();
        assert_eq!(failed, 1, "{system}: {ran:#?}");
        assert!(worker.undo().is_bare, "{system}");
    }
}

#[test]
fn real_what_is_not_signed_by_the_key_is_not_installed() {
    for (system, machine) in systems::each() {
        let worker = Worker::new(machine, [tool()]);
        for key in [Key::generate("Somebody else").binary(), b"no key at all"] {
            let mut order = worker.order(&["install lab-tool"]);
            order.repository.as_mut().unwrap().key = key.to_vec();
            let ran = worker.run(&order);
            failed_and_comes_later(&worker, &ran, "could not be read: apt: ", &format!("{system}: {key:?}"));
        }
    }
}

/// A time limit in seconds that no other test has: by it this test finds the program that waits.
const PATIENCE: u64 = 97;

/// Waits until an apt with this time limit for dpkg's lock runs.
fn wait_for_one_who_waits() {
    let option = format!("DPkg::Lock::Timeout={PATIENCE}\0");
    let is_asked = |entry: fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&option)
    };
    let until = Instant::now() + Duration::from_secs(60);
    while !fs::read_dir("/proc").unwrap().flatten().any(is_asked) {
        assert!(Instant::now() < until, "nobody waits");
    }
}

#[test]
fn real_another_who_installs_is_waited_for_within_a_limit() {
    for (system, machine) in systems::each() {
        let worker = Worker::new(machine, [tool()]);
        let holder = Holder::on(&worker.machine);
        let ran = worker.run(&Order { lock: 1, ..worker.order(&["install lab-tool"]) });
        assert_eq!(ran.failed.len(), 1, "{system}: {ran:#?}");
        assert!(
            ran.failed[0].contains("(/var/lib/dpkg/lock-frontend), is another process using it?"),
            "{system}: {ran:#?}"
        );
        worker.has("lab-tool", None);

        // One that ends in time is waited for.
        worker.tell(&Order { lock: PATIENCE, ..worker.order(&["install lab-tool"]) });
        let mut waiting = worker.machine.command(&CHILD).stdout(Stdio::null()).spawn().unwrap();
        wait_for_one_who_waits();
        holder.let_go();
        assert!(waiting.wait().unwrap().success(), "{system}");
        let ran = worker.ran();
        assert!(ran.failed.is_empty(), "{system}: {ran:#?}");
        worker.has("lab-tool", Some("install ok installed 1.0"));
        assert!(worker.undo().is_bare, "{system}");
    }
}

#[test]
fn real_a_full_disk_is_told_and_room_lets_it_go_on() {
    for (system, machine) in systems::each() {
        let weight = 3_000_000;
        let worker = Worker::new(machine, [Package::new("lab-tool", "1.0").weight(weight)]);
        let before = worker.machine.packages();
        // The lists are there, and the package has no room.
        worker.apply(&[]);
        worker.machine.leave_free(4_000_000);
        let ran = worker.apply(&["install lab-tool"]);
        // Where dpkg's own database has taken the last of it, the receipt cannot be kept either: it says that lab-tool was begun.
        let problems: Vec<&String> = ran.failed.iter().chain(&ran.error).collect();
        let expected = ["No space left on device", "You don't have enough free space in"];
        assert!(
            problems.len() == 1 && expected.iter().any(|it| problems[0].contains(it)),
            "{system}: {ran:#?}"
        );
        worker.machine.leave_free(100_000_000);
        let ran = worker.apply(&["install lab-tool"]);
        assert!(ran.failed.is_empty(), "{system}: {ran:#?}");
        worker.has("lab-tool", Some("install ok installed 1.0"));
        assert!(worker.undo().is_bare, "{system}");
        assert_eq!(worker.machine.packages(), before, "{system}");
    }
}

#[test]
fn real_a_source_that_changes_is_read_again_and_the_old_lists_go() {
    let Some(machine) = systems::this() else { return };
    let mut worker = Worker::new(machine, [Package::new("lab-tool", "1.0")]);
    worker.apply(&["install lab-tool"]);
    let folder = worker.repository.release(&worker.key);
    let second = Server::start(&folder);
    let mut order = worker.order(&["install lab-tool"]);
    order.repository.as_mut().unwrap().url = second.url();
    let ran = worker.run(&order);
    assert!(
        ran.failed.is_empty() && ran.effects.iter().any(|it| it.starts_with("Done: apt has read")),
        "{ran:#?}"
    );
    assert!(second.count(&worker.repository.path_of("InRelease")) > 0);
    assert!(worker.undo().is_bare);
    let lists = worker.machine.tree(&["var/lib/apt/lists"]);
    let lists: Vec<_> = lists.paths().filter(|path| path.to_str().unwrap().contains("dists")).collect();
    assert!(lists.is_empty(), "{lists:?}");
}

#[test]
fn real_lists_that_are_read_at_the_end_of_a_run_come_through_the_proxy() {
    let Some(machine) = systems::this() else { return };
    let worker = Worker::new(machine, []);
    let mut order = Order { proxy: Some(worker.server.url()), ..worker.order(&[]) };
    if let Some(source) = &mut order.repository {
        "http://rocm.example".clone_into(&mut source.url);
    }
    let ran = worker.run(&order);
    assert!(ran.effects.len() == 1 && ran.effects[0].starts_with("Done: apt has read"), "{ran:#?}");
    let asked = worker.server.requests();
    assert!(asked.iter().all(|it| it.authority.as_deref() == Some("rocm.example")), "{asked:#?}");
    assert!(worker.undo().is_bare);
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_what_needs_a_package_that_did_not_come_is_not_installed_and_names_it() {
    let Some(machine) = systems::this() else { return };
    let packages = [Package::new("lab-tool", "1.0"), Package::new("lab-headers", "1.0")];
    let worker = Worker::new(machine, packages);
    let ran = worker.apply(&["install lab-tool after lab-headers", "install lab-headers"]);
    assert_eq!(ran.failed, ["package:lab-tool: it needs package:lab-headers, which did not come"]);
    let packages: Vec<_> = ran.begun.iter().filter(|begun| begun.starts_with("package:")).collect();
    assert_eq!(packages, ["package:lab-headers"], "nothing of lab-tool was fetched");
    worker.has("lab-tool", None);
    worker.has("lab-headers", Some("install ok installed 1.0"));
    // By now it is right.
    let ran = worker.apply(&["install lab-tool after lab-headers", "install lab-headers"]);
    assert!(ran.failed.is_empty(), "{ran:#?}");
    worker.has("lab-tool", Some("install ok installed 1.0"));
    assert!(worker.undo().is_bare);
    // In the order in which they are needed, it comes in one run.
    let ran = worker.apply(&["install lab-headers", "install lab-tool after lab-headers"]);
    assert!(ran.failed.is_empty(), "{ran:#?}");
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_what_somebodys_unpacked_package_lacks_is_not_installed_for_it() {
    let Some(machine) = systems::this() else { return };
    let packages = [
        Package::new("lab-needy", "1.0").depends("lab-base"),
        Package::new("lab-base", "1.0"),
        Package::new("lab-tool", "1.0"),
    ];
    let worker = Worker::new(machine, packages);
    worker.somebody_adds_a_source();
    let unpack = "cd /tmp && apt-get download lab-needy && dpkg --unpack lab-needy_*.deb";
    worker.machine.call(&["sh", "-c", unpack]).well();
    let ran = worker.apply(&["install lab-tool"]);
    let problem = "lab-needy is half installed, and to put that right apt would change or install lab-base";
    assert!(ran.failed.len() == 1 && ran.failed[0].contains(problem), "{ran:#?}");
    worker.has("lab-base", None);
    worker.has("lab-needy", Some("install ok unpacked 1.0"));
    worker.machine.apt_get(&["install", "lab-base"]);
    worker.machine.apt_get(&["--fix-broken", "install"]).well();
    let ran = worker.apply(&["install lab-tool"]);
    assert!(ran.failed.is_empty(), "{ran:#?}");
}

#[test]
fn real_what_dpkg_says_is_understood_whatever_language_the_machine_speaks() {
    let Some(machine) = systems::trixie() else { return };
    let catalogue = machine.outside("/usr/share/locale/de/LC_MESSAGES/dpkg.mo");
    assert!(catalogue.exists(), "dpkg speaks no German there: {}", catalogue.display());
    let worker = Worker::new(machine, [faulty::fails("lab-fails", "not now")]);
    worker.tell(&worker.order(&["install lab-fails"]));
    // As Ubuntu's /etc/default/locale has it.
    let ran = worker.machine.command(&CHILD).env("LANGUAGE", "de_DE:de").output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let ran = worker.ran();
    let problem = "package lab-fails (--configure): installed lab-fails package post-installation script";
    assert!(ran.failed.len() == 1 && ran.failed[0].contains(problem), "{ran:#?}");
    let undone = worker.undo();
    assert!(undone.is_bare && undone.failed.is_empty(), "{undone:#?}");
}
