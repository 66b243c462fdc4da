//! Real apt and dpkg change a copy of this system, and nothing of this system.

use std::path::Path;

use lab::key::Key;
use lab::package::{Package, Script};
use lab::repository::Repository;
use lab::server::Server;
use lab::{killed, systems};
use support::real;

#[test]
fn real_an_installed_and_purged_package_leaves_the_copy_as_it_was_and_this_system_untouched() {
    let Some(machine) = systems::this() else { return };
    let here = || std::fs::read("/var/lib/dpkg/status").unwrap();
    let before_here = here();
    let key = Key::generate("Laboratory");
    let package = Package::new("rocworker-lab", "1.0")
        .program("/usr/bin/rocworker-lab", "#!/bin/sh\necho it runs\n")
        .conffile("/etc/rocworker-lab.conf", "a=1\n")
        .script(Script::Postinst, "#!/bin/sh\nset -e\ntouch /var/lib/rocworker-lab.marked\n")
        .script(Script::Postrm, "#!/bin/sh\nset -e\nrm -f /var/lib/rocworker-lab.marked\n");
    let mut repository = Repository::new("Lab", "stable", "main").with([package]);
    let server = Server::start(&repository.release(&key));
    let before = machine.packages();
    machine.add_source(&repository, &server.url(), &key);
    machine.apt_get(&["update"]).well();
    machine.apt_get(&["install", "rocworker-lab"]).well();
    assert_eq!(machine.package("rocworker-lab").as_deref(), Some("install ok installed 1.0"));
    assert_eq!(machine.call(&["rocworker-lab"]).well(), "it runs\n");
    assert!(machine.outside("/var/lib/rocworker-lab.marked").exists());
    machine.apt_get(&["purge", "rocworker-lab"]).well();
    assert_eq!(machine.packages(), before);
    for path in ["/usr/bin/rocworker-lab", "/etc/rocworker-lab.conf", "/var/lib/rocworker-lab.marked"] {
        assert!(!machine.outside(path).exists(), "{path}");
        assert!(!Path::new(path).exists(), "{path} is on this system");
    }
    assert_eq!(here(), before_here);
}

#[test]
fn real_rocworker_sees_the_hardware_of_the_machine_that_it_runs_in() {
    let Some(program) = real::require_root_and_built("ROCWORKER_PROGRAM", &["unshare"]) else { return };
    for (system, machine) in systems::both() {
        machine.put_program(&program, "/usr/bin/rocworker");
        let seen = machine.call(&["rocworker", "--output", "json", "detect"]).well();
        // tests/layout/src/sample.rs
        assert!(seen.contains("\"/dev/dri/renderD129\""), "{system}: {seen}");
    }
}

#[test]
fn real_what_was_written_is_told_and_a_removal_too() {
    for (system, machine) in systems::both() {
        let before = machine.written();
        machine.put("/etc/rocworker-lab/new", "new\n");
        machine.call(&["rm", "/etc/debian_version"]).well();
        let after = machine.written();
        let told: Vec<&Path> = after.paths().filter(|path| before.get(path) != after.get(path)).collect();
        let expected = ["etc/debian_version", "etc/rocworker-lab", "etc/rocworker-lab/new"];
        assert_eq!(told, expected.map(Path::new), "{system}");
        // overlayfs' sign of what is removed
        assert_eq!(after.get("etc/debian_version").unwrap().mode & 0o170_000, 0o020_000, "{system}");
    }
}

#[test]
fn real_a_program_is_killed_at_its_own_call_and_what_it_started_goes_on_until_all_are_killed() {
    // Its child is what it is to be before it goes on.
    let script = "#!/bin/sh\nsleep infinity &\nuntil [ \"$(cat /proc/$!/comm)\" = sleep ]; do :; done\n\
                  exec 3>/root/opened\nmkdir /root/after\n";
    for (system, machine) in systems::both() {
        machine.put_script("/root/program", script);
        let argv = ["/root/program"];
        let sleeping = || {
            let names = machine.call(&["sh", "-c", "cat /proc/[0-9]*/comm"]).stdout;
            names.lines().filter(|name| *name == "sleep").count()
        };
        let calls = killed::calls(&machine, &argv, "openat");
        let at = calls.iter().find(|call| call.line.contains("\"/root/opened\"")).unwrap();
        machine.call(&["rm", "-r", "/root/after", "/root/opened"]).well();
        assert_eq!(sleeping(), 1, "{system}");
        assert!(killed::killed_at(&machine, &argv, at), "{system}: {at:?}");
        assert!(!machine.outside("/root/opened").exists(), "{system}");
        assert!(!machine.outside("/root/after").exists(), "{system}");
        assert_eq!(sleeping(), 2, "{system}");
        machine.kill_all();
        assert_eq!(sleeping(), 0, "{system}");
        machine.call(&["true"]).well();
    }
}

#[test]
fn real_no_program_of_a_copy_may_load_a_module_into_this_machines_kernel() {
    for (system, machine) in systems::both() {
        let bounding = machine.call(&["grep", "CapBnd", "/proc/self/status"]).well();
        let bounding = u64::from_str_radix(bounding.trim_start_matches("CapBnd:").trim(), 16).unwrap();
        let effective = machine.call(&["grep", "CapEff", "/proc/self/status"]).well();
        let effective = u64::from_str_radix(effective.trim_start_matches("CapEff:").trim(), 16).unwrap();
        // linux/capability.h: SYS_MODULE, SYS_BOOT, SYS_TIME; SYS_ADMIN is there.
        for lost in [16, 22, 25] {
            assert_eq!((bounding >> lost & 1, effective >> lost & 1), (0, 0), "{system}: {lost}");
        }
        assert_eq!(effective >> 21 & 1, 1, "{system}");
    }
}
