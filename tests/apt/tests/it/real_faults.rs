//! Faults around an installation, with apt's and dpkg's own messages.

use lab::killed::{self, Death};
use lab::lock::Holder;
use lab::package::Package;
use lab::{machine::Machine, systems};
use support::killed::TREE;

const NAME: &str = "rocworker-lab";
const WITHOUT_WAITING: [&str; 2] = ["-o", "DPkg::Lock::Timeout=0"];

/// A package in the shared folder, by its name in the machine.
fn local(machine: &Machine) -> String {
    let package = Package::new(NAME, "1.0").file("/usr/share/rocworker-lab", "x\n");
    let file = package.build(&machine.shared());
    machine.shared_name(&file)
}

#[test]
fn real_an_installation_is_refused_while_another_holds_the_locks_and_done_afterwards() {
    for (system, machine) in systems::both() {
        let file = local(&machine);
        let before = machine.packages();
        let holder = Holder::on(&machine);
        let said = machine.apt_get(&[&WITHOUT_WAITING[..], &["install", &file]].concat()).badly();
        assert!(said.contains("Could not get lock /var/lib/dpkg/lock-frontend."), "{system}: {said}");
        let said = machine.call(&["dpkg", "--install", &file]).badly();
        // dpkg 1.22 names the holder where 1.21 says "another process".
        assert!(said.contains("dpkg frontend lock was locked by "), "{system}: {said}");
        holder.let_go();
        assert_eq!(machine.packages(), before, "{system}");
        machine.apt_get(&[&WITHOUT_WAITING[..], &["install", &file]].concat()).well();
        assert!(machine.package(NAME).is_some(), "{system}");
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_killed_dpkg_leaves_a_state_that_dpkg_itself_puts_right() {
    for (system, machine) in systems::both() {
        let file = local(&machine);
        let install = ["apt-get", "--quiet", "--yes", "install", &file];
        let (said, calls) = killed::dpkg_calls(&machine, &install, TREE);
        said.well();
        // apt unpacks in one run, and configures in the next.
        assert!(
            calls.iter().any(|at| at.run == 1) && calls.iter().any(|at| at.run == 2),
            "{system}: {calls:?}"
        );
        let mut interrupted = 0;
        // Some of them: that every one can be put right is dpkg's own to show.
        for at in calls.iter().step_by(16) {
            let death = if interrupted % 2 == 0 { Death::Alone } else { Death::WithAll };
            machine.apt_get(&["purge", NAME]).well();
            let said = killed::dpkg_killed_at(&machine, &install, at, death);
            let said = said.unwrap_or_else(|| panic!("{system}: {at:?} was not made again"));
            assert!(!said.status.success(), "{system}: {at:?}");
            interrupted += u32::from(machine.package(NAME).as_deref() != Some("install ok installed 1.0"));
            // dpkg's journal is worked off first; a package that is half there fails it, and is put there anew.
            machine.call(&["dpkg", "--configure", "--pending"]);
            machine.apt_get(&["install", "--reinstall", &file]).well();
            assert_eq!(
                machine.package(NAME).as_deref(),
                Some("install ok installed 1.0"),
                "{system}: {at:?}"
            );
            assert_eq!(machine.text("/usr/share/rocworker-lab").as_deref(), Some("x\n"), "{system}: {at:?}");
        }
        assert!(interrupted > 0, "{system}");
    }
}

#[test]
fn real_a_full_disk_ends_an_installation_and_room_lets_it_be_done() {
    for (system, machine) in systems::both() {
        let weight = 3_000_000;
        let file = Package::new(NAME, "1.0").weight(weight).build(&machine.shared());
        let file = machine.shared_name(&file);
        machine.leave_free(1_000_000);
        let said = machine.call(&["dpkg", "--install", &file]).badly();
        assert!(said.contains("No space left on device"), "{system}: {said}");
        assert_ne!(machine.package(NAME).as_deref(), Some("install ok installed 1.0"), "{system}");
        machine.leave_free(100_000_000);
        machine.call(&["dpkg", "--install", &file]).well();
        assert_eq!(machine.package(NAME).as_deref(), Some("install ok installed 1.0"), "{system}");
    }
}
