//! Packages that come and go with real apt and dpkg, on a copy of this system and on a second release of Debian.

use crate::packages::worker::{Order, Worker};
use lab::machine::SHARED;
use lab::package::{Package, Script};
use lab::server::Misbehaviour;
use lab::systems;

/// A tool with a library that nothing else needs, and a configuration.
fn tool() -> [Package; 2] {
    [
        Package::new("lab-tool", "1.0")
            .depends("lab-library (>= 1.0)")
            .file("/usr/share/lab-tool/is-here", "1.0\n")
            .conffile("/etc/lab-tool.conf", "a=1\n"),
        Package::new("lab-library", "1.0").conffile("/etc/lab-library.conf", "b=1\n"),
    ]
}

#[test]
fn real_a_package_comes_with_what_it_needs_and_undo_gives_the_machine_back() {
    for (system, machine) in systems::both() {
        let worker = Worker::new(machine, tool());
        // A machine on which apt has run before: it keeps folders and locks of its own.
        worker.machine.apt_get(&["update"]).well();
        let before = worker.machine.packages();
        let tree = || worker.machine.tree(&["etc", "usr/share", "var/lib/apt", "var/lib/dpkg/info"]);
        let tree_before = tree();
        let ran = worker.apply(&["install lab-tool"]);
        assert!(ran.failed.is_empty() && ran.error.is_none(), "{system}: {ran:#?}");
        worker.has("lab-tool", Some("install ok installed 1.0"));
        worker.has("lab-library", Some("install ok installed 1.0"));
        assert!(ran.steps.iter().any(|step| step.contains("lab-tool")), "{system}: {ran:#?}");
        let asked = worker.server.requests().len();

        let again = worker.apply(&["install lab-tool"]);
        assert!(again.planned.is_empty() && again.effects.is_empty(), "{system}: {again:#?}");
        assert_eq!(worker.server.requests().len(), asked, "{system}: a second apply asks nobody");

        let undone = worker.undo();
        assert!(
            undone.is_bare && undone.failed.is_empty() && undone.left.is_empty(),
            "{system}: {undone:#?}"
        );
        assert_eq!(worker.machine.packages(), before, "{system}");
        let off = tree().differences(&[&tree_before]);
        assert!(off.is_empty(), "{system}:\n{}", off.join("\n"));
    }
}

#[test]
fn real_what_would_replace_or_remove_somebodys_package_is_refused_by_name() {
    for (system, machine) in systems::each() {
        let packages = [
            Package::new("lab-base", "1.0"),
            Package::new("lab-base", "2.0"),
            Package::new("lab-needy", "1.0").depends("lab-base (>= 2.0)"),
            Package::new("lab-rival", "1.0").conflicts("lab-base"),
            Package::new("lab-lost", "1.0").depends("lab-nowhere"),
            Package::new("lab-other", "1.0").field("Provides", "lab-virtual"),
        ];
        let worker = Worker::new(machine, packages);
        worker.somebody_installs(&["lab-base=1.0"]);
        let before = worker.machine.packages();
        for (name, problem) in [
            (
                "lab-needy",
                "package:lab-needy: apt would replace lab-base (1.0 to 2.0) for it, which is not configured",
            ),
            ("lab-rival", "package:lab-rival: apt would remove lab-base for it, which is not configured"),
            ("lab-lost", "package:lab-lost: apt: "),
            ("lab-unheard-of", "package:lab-unheard-of: apt: Unable to locate package lab-unheard-of"),
            ("lab-virtual", "apt knows no package lab-virtual, and would install lab-other for it"),
            // A pattern to some versions of apt, and a name that nobody has to others.
            ("lab.other", "lab.other"),
            ("^lab-o", "^lab-o"),
        ] {
            let ran = worker.apply(&[&format!("install {name}")]);
            assert!(ran.failed.len() == 1 && ran.failed[0].contains(problem), "{system}: {ran:#?}");
            assert_eq!(worker.machine.packages(), before, "{system}: {name}");
        }
        assert!(worker.undo().is_bare, "{system}");
        assert_eq!(worker.machine.packages(), before, "{system}");
    }
}

#[test]
fn real_a_package_that_fails_is_told_and_either_comes_with_the_next_apply_or_goes_with_undo() {
    for (system, machine) in systems::each() {
        let packages = [
            Package::new("lab-never", "1.0")
                .depends("lab-library")
                .script(Script::Postinst, "#!/bin/sh\necho it is broken >&2\nexit 3\n"),
            Package::new("lab-second", "1.0").script(
                Script::Postinst,
                "#!/bin/sh\n[ -e /var/lib/lab-tried ] || { touch /var/lib/lab-tried; exit 4; }\n",
            ),
            Package::new("lab-library", "1.0"),
        ];
        let worker = Worker::new(machine, packages);
        let before = worker.machine.packages();
        let ran = worker.apply(&["install lab-second"]);
        let problem = "package:lab-second: apt: package lab-second (--configure): installed lab-second package \
                    post-installation script subprocess returned error exit status 4";
        assert_eq!(ran.failed, [problem], "{system}");
        worker.has("lab-second", Some("install ok half-configured 1.0"));
        let ran = worker.apply(&["install lab-second"]);
        assert_eq!(ran.planned.len(), 1, "{system}: {ran:#?}");
        assert!(ran.failed.is_empty(), "{system}: {ran:#?}");
        worker.has("lab-second", Some("install ok installed 1.0"));

        for _ in 0..2 {
            let ran = worker.apply(&["install lab-second", "install lab-never"]);
            assert!(ran.failed.len() == 1 && ran.failed[0].contains("exit status 3"), "{system}: {ran:#?}");
            worker.has("lab-never", Some("install ok half-configured 1.0"));
        }
        let undone = worker.undo();
        assert!(undone.is_bare && undone.failed.is_empty(), "{system}: {undone:#?}");
        assert_eq!(worker.machine.packages(), before, "{system}");
    }
}

#[test]
fn real_a_configuration_that_somebody_has_changed_stays_and_is_named() {
    for (system, machine) in systems::each() {
        let worker = Worker::new(machine, tool());
        worker.apply(&["install lab-tool"]);
        worker.machine.put("/etc/lab-tool.conf", "a=2\n");
        let undone = worker.undo();
        assert!(undone.is_bare, "{system}: {undone:#?}");
        let removal = undone.planned.iter().find(|it| it.contains("package:lab-tool")).unwrap();
        assert!(removal.contains("/etc/lab-tool.conf stays, which was changed"), "{system}: {removal}");
        assert_eq!(worker.machine.text("/etc/lab-tool.conf").as_deref(), Some("a=2\n"), "{system}");
        worker.has("lab-tool", Some("deinstall ok config-files 1.0"));
        worker.has("lab-library", None);

        // The package is there again, beside a configuration from before it: that stays unmanaged, whatever becomes of
        // the package.
        worker.apply(&["install lab-tool"]);
        worker.has("lab-tool", Some("install ok installed 1.0"));
        assert_eq!(worker.machine.text("/etc/lab-tool.conf").as_deref(), Some("a=2\n"), "{system}");
        worker.machine.put("/etc/lab-tool.conf", "a=1\n");
        assert!(worker.undo().is_bare, "{system}");
        assert_eq!(worker.machine.text("/etc/lab-tool.conf").as_deref(), Some("a=1\n"), "{system}");

        worker.apply(&["install lab-tool"]);
        worker.machine.put("/etc/lab-library.conf", "b=2\n");
        let undone = worker.undo_by_force();
        assert!(undone.is_bare, "{system}: {undone:#?}");
        assert_eq!(worker.machine.text("/etc/lab-library.conf"), None, "{system}: by force it goes");
    }
}

#[test]
fn real_a_package_that_asks_is_answered_by_its_own_default() {
    for (system, machine) in systems::each() {
        let asks = Package::new("lab-asks", "1.0")
            .depends("debconf")
            .templates("Template: lab-asks/colour\nType: string\nDefault: green\nDescription: Which colour?\n")
            .script(
                Script::Config,
                "#!/bin/sh\nset -e\n. /usr/share/debconf/confmodule\ndb_input critical lab-asks/colour || true\ndb_go\n",
            )
            .script(
                Script::Postinst,
                "#!/bin/sh\nset -e\n. /usr/share/debconf/confmodule\ndb_get lab-asks/colour\necho \"$RET\" >/etc/lab-asks\n",
            )
            .script(
                Script::Postrm,
                "#!/bin/sh\nset -e\nrm -f /etc/lab-asks\n[ \"$1\" != purge ] || { . /usr/share/debconf/confmodule; db_purge; }\n",
            );
        let worker = Worker::new(machine, [asks]);
        let ran = worker.apply(&["install lab-asks"]);
        assert!(ran.failed.is_empty(), "{system}: {ran:#?}");
        assert_eq!(worker.machine.text("/etc/lab-asks").as_deref(), Some("green\n"), "{system}");
        assert!(worker.undo().is_bare, "{system}");
        assert_eq!(worker.machine.text("/etc/lab-asks"), None, "{system}");
    }
}

#[test]
fn real_one_that_is_there_already_is_right_and_is_never_put_back_to_an_older_version() {
    for (system, machine) in systems::each() {
        let packages = ["1.0", "2.0", "3.0"].map(|version| Package::new("lab-tool", version));
        let worker = Worker::new(machine, packages);
        worker.somebody_installs(&["lab-tool=2.0"]);
        let ran = worker.apply(&["install lab-tool"]);
        assert!(!ran.planned.iter().any(|it| it.contains("package:")), "{system}: {ran:#?}");
        let ran = worker.apply(&["install lab-tool 1.0"]);
        assert!(ran.blocked[0].contains("2.0 is there, which is newer than 1.0"), "{system}: {ran:#?}");
        let ran = worker.apply(&["install lab-tool 3.0"]);
        assert!(ran.blocked[0].contains("apt-get install lab-tool=3.0"), "{system}: {ran:#?}");
        assert!(worker.undo().is_bare, "{system}");
        worker.has("lab-tool", Some("install ok installed 2.0"));
        worker.machine.apt_get(&["purge", "lab-tool"]).well();

        // The managed version goes up with the configuration, and not down.
        worker.apply(&["install lab-tool 1.0"]);
        worker.has("lab-tool", Some("install ok installed 1.0"));
        let ran = worker.apply(&["install lab-tool 3.0"]);
        assert!(ran.planned[0].starts_with("Replace package:lab-tool: 1.0 → 3.0"), "{system}: {ran:#?}");
        worker.has("lab-tool", Some("install ok installed 3.0"));
        let ran = worker.apply(&["install lab-tool 2.0"]);
        assert!(ran.blocked[0].contains("3.0 is there, which is newer than 2.0"), "{system}: {ran:#?}");
        assert!(worker.undo().is_bare, "{system}");
        worker.has("lab-tool", None);
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_one_that_somebody_removes_comes_again_until_it_is_clear_that_they_mean_it() {
    let Some(machine) = systems::this() else { return };
    let worker = Worker::new(machine, tool());
    worker.apply(&["install lab-tool"]);
    for _ in 0..3 {
        worker.machine.apt_get(&["purge", "lab-tool"]).well();
        let ran = worker.apply(&["install lab-tool"]);
        assert!(ran.planned[0].starts_with("Repair package:lab-tool"), "{ran:#?}");
        worker.has("lab-tool", Some("install ok installed 1.0"));
    }
    worker.machine.apt_get(&["purge", "lab-tool"]).well();
    let ran = worker.apply(&["install lab-tool"]);
    assert!(ran.planned.is_empty() && ran.contested.len() == 1, "{ran:#?}");
    let undone = worker.undo();
    assert!(undone.is_bare && undone.failed.is_empty(), "{undone:#?}");
    worker.has("lab-library", None);
}

#[test]
fn real_what_somebody_else_needs_by_now_or_has_marked_stays_and_is_named() {
    for (system, machine) in systems::each() {
        let mut packages = tool().to_vec();
        packages.push(Package::new("lab-user", "1.0").depends("lab-library"));
        packages.push(Package::new("lab-fan", "1.0").depends("lab-tool"));
        let worker = Worker::new(machine, packages);
        worker.apply(&["install lab-tool"]);
        worker.somebody_installs(&["lab-user"]);
        let undone = worker.undo();
        assert!(undone.is_bare, "{system}: {undone:#?}");
        assert!(
            undone.planned[0].contains("lab-library stays, which lab-user needs"),
            "{system}: {undone:#?}"
        );
        worker.has("lab-tool", None);
        worker.has("lab-library", Some("install ok installed 1.0"));
        worker.machine.apt_get(&["purge", "lab-user", "lab-library"]).well();

        worker.apply(&["install lab-tool"]);
        worker.machine.call(&["apt-mark", "manual", "lab-library"]).well();
        let undone = worker.undo();
        assert!(
            undone.is_bare && undone.planned[0].contains("apt-mark auto lab-library"),
            "{system}: {undone:#?}"
        );
        worker.has("lab-library", Some("install ok installed 1.0"));
        worker.machine.apt_get(&["purge", "lab-library"]).well();

        worker.apply(&["install lab-tool"]);
        worker.somebody_installs(&["lab-fan"]);
        let undone = worker.undo();
        assert!(!undone.is_bare && undone.left.len() == 1, "{system}: {undone:#?}");
        assert!(
            undone.left[0].contains("lab-tool stays, which lab-fan needs: that first"),
            "{system}: {undone:#?}"
        );
        worker.has("lab-tool", Some("install ok installed 1.0"));
        worker.machine.apt_get(&["purge", "lab-fan"]).well();
        worker.machine.call(&["apt-mark", "hold", "lab-tool"]).well();
        let undone = worker.undo();
        assert!(undone.left[0].contains("lab-tool stays, which is on hold"), "{system}: {undone:#?}");
        worker.has("lab-tool", Some("hold ok installed 1.0"));
        worker.has("lab-library", Some("install ok installed 1.0"));
        worker.machine.call(&["apt-mark", "unhold", "lab-tool"]).well();
        let undone = worker.undo();
        assert!(undone.is_bare && undone.left.is_empty(), "{system}: {undone:#?}");
        worker.has("lab-tool", None);
        worker.has("lab-library", None);
    }
}

/// Has the machine note the arguments of each call of a program in front of running it.
fn noted(worker: &Worker, program: &str) {
    let script =
        format!("#!/bin/sh\necho \"{program} $*\" >> {SHARED}/calls\nexec /usr/bin/{program} \"$@\"\n");
    worker.machine.put_script(&format!("/usr/local/sbin/{program}"), &script);
}

/// The noted calls since the last look that contain all of these words.
fn calls(worker: &Worker, words: &[&str]) -> usize {
    let calls = worker.machine.text(&format!("{SHARED}/calls")).unwrap_or_default();
    calls.lines().filter(|call| words.iter().all(|word| call.contains(word))).count()
}

#[test]
fn real_apt_simulates_all_packages_of_a_run_at_once_and_is_not_asked_where_none_is_to_come() {
    for (system, machine) in systems::each() {
        let mut packages = tool().to_vec();
        packages.push(Package::new("lab-user", "1.0").depends("lab-library, lab-data"));
        packages.push(Package::new("lab-data", "1.0"));
        let worker = Worker::new(machine, packages);
        let before = worker.machine.packages();
        for program in ["apt-get", "dpkg-query"] {
            noted(&worker, program);
        }
        let wanted = ["install lab-tool", "install lab-user"];
        let ran = worker.apply(&wanted);
        assert!(ran.failed.is_empty(), "{system}: {ran:#?}");
        assert_eq!(calls(&worker, &["--simulate"]), 1, "{system}");
        assert_eq!(calls(&worker, &["--simulate", "lab-tool lab-user"]), 1, "{system}");
        worker.machine.put(&format!("{SHARED}/calls"), "");
        assert!(worker.apply(&wanted).planned.is_empty(), "{system}");
        assert_eq!(calls(&worker, &["apt"]), 0, "{system}");
        assert_eq!(calls(&worker, &["dpkg-query", "--show"]), 1, "{system}");

        // What came for the sake of one goes with that one.
        let ran = worker.apply(&wanted[..1]);
        assert!(ran.failed.is_empty(), "{system}: {ran:#?}");
        worker.has("lab-data", None);
        worker.has("lab-library", Some("install ok installed 1.0"));
        // One comes as the other goes: what both need stays.
        let ran = worker.apply(&wanted[1..]);
        assert!(ran.failed.is_empty(), "{system}: {ran:#?}");
        worker.has("lab-tool", None);
        worker.has("lab-library", Some("install ok installed 1.0"));
        worker.apply(&wanted[..1]);
        worker.machine.put(&format!("{SHARED}/calls"), "");
        let ran = worker.apply(&["install lab-nowhere", "install lab-tool", "install lab-user"]);
        assert_eq!(ran.failed.len(), 1, "{system}: {ran:#?}");
        assert!(ran.failed[0].contains("Unable to locate package lab-nowhere"), "{system}: {ran:#?}");
        worker.has("lab-user", Some("install ok installed 1.0"));
        // Once for both, once for each.
        assert_eq!(calls(&worker, &["--simulate"]), 3, "{system}");
        worker.machine.put(&format!("{SHARED}/calls"), "");
        assert!(worker.undo().is_bare, "{system}");
        assert_eq!(calls(&worker, &["--simulate"]), 1, "{system}: two packages go");
        assert_eq!(worker.machine.packages(), before, "{system}");
    }
}

#[test]
fn real_one_that_should_not_be_there_goes_and_undo_brings_the_same_version_if_it_is_to_be_had() {
    for (system, machine) in systems::each() {
        let packages = [
            Package::new("lab-tool", "1.0").conffile("/etc/lab-tool.conf", "a=1\n"),
            Package::new("lab-tool", "2.0"),
            Package::new("lab-fan", "1.0").depends("lab-tool"),
        ];
        let mut worker = Worker::new(machine, packages);
        worker.somebody_installs(&["lab-tool=1.0"]);
        worker.machine.put("/etc/lab-tool.conf", "a=2\n");
        let ran = worker.apply(&["absent lab-tool"]);
        assert!(ran.failed.is_empty(), "{system}: {ran:#?}");
        worker.has("lab-tool", Some("deinstall ok config-files 1.0"));
        assert!(worker.apply(&["absent lab-tool"]).planned.is_empty(), "{system}");
        // The package's source is somebody's: the managed one goes with undo, before what it offers is asked for.
        worker.somebody_adds_a_source();
        let undone = worker.undo();
        assert!(undone.is_bare, "{system}: {undone:#?}");
        worker.has("lab-tool", Some("install ok installed 1.0"));
        assert_eq!(worker.machine.text("/etc/lab-tool.conf").as_deref(), Some("a=2\n"), "{system}");

        // What needs it is not taken away with it.
        worker.somebody_installs(&["lab-fan"]);
        let ran = worker.apply(&["absent lab-tool"]);
        assert!(ran.failed[0].contains("lab-tool stays, which lab-fan needs"), "{system}: {ran:#?}");
        worker.has("lab-tool", Some("install ok installed 1.0"));
        worker.machine.apt_get(&["purge", "lab-fan"]).well();

        worker.apply(&["absent lab-tool"]);
        worker.repository.remove("lab-tool", "1.0");
        worker.release();
        worker.machine.apt_get(&["update"]).well();
        let undone = worker.undo();
        assert!(!undone.is_bare && undone.failed.len() == 1, "{system}: {undone:#?}");
        assert!(undone.failed[0].contains("version '1.0' of 'lab-tool:"), "{system}: {undone:#?}");
        worker.has("lab-tool", Some("deinstall ok config-files 1.0"));
        worker.somebody_installs(&["lab-tool"]);
        assert!(worker.undo().is_bare, "{system}: theirs is there");
    }
}

#[test]
fn real_apts_own_simulation_is_shown_before_anything_is_written() {
    for (system, machine) in systems::each() {
        let worker = Worker::new(machine, tool());
        worker.machine.apt_get(&["update"]).well();
        let everything = || worker.machine.tree(&["etc", "var/lib", "var/cache", "usr/share", "tmp"]);
        let before = everything();
        let order = Order { only_plan: true, ..worker.order(&["install lab-tool"]) };
        let (lines, problems) = worker.run(&order).rehearsal.unwrap();
        assert_eq!(problems, [""; 0], "{system}");
        let comes = |name: &str| lines.iter().any(|line| line.starts_with(&format!("Inst {name} (1.0 ")));
        assert!(comes("lab-tool") && comes("lab-library"), "{system}: {lines:#?}");
        let off = everything().differences(&[&before]);
        assert!(off.is_empty(), "{system}:\n{}", off.join("\n"));

        // A rehearsal goes on by the means of an apply: what a server does not tell, it does not make up.
        worker.server.misbehave(&worker.repository.path_of("InRelease"), Misbehaviour::Status(500));
        let (lines, problems) = worker.run(&order).rehearsal.unwrap();
        assert!(lines.is_empty() && problems.len() == 2, "{system}: {lines:#?} {problems:#?}");
        assert!(problems[1].contains("Unable to locate package lab-tool"), "{system}: {problems:#?}");
        worker.server.behave();

        worker.apply(&["install lab-tool"]);
        let order = Order { only_plan: true, ..Order::default() };
        let (lines, problems) = worker.run(&order).rehearsal.unwrap();
        assert_eq!(problems, [""; 0], "{system}");
        assert!(lines.iter().any(|line| line.starts_with("Remv lab-tool [1.0]")), "{system}: {lines:#?}");
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_what_came_with_one_that_failed_is_somebodys_once_they_have_marked_it() {
    let Some(machine) = systems::this() else { return };
    let packages = [
        Package::new("lab-never", "1.0")
            .depends("lab-library")
            .script(Script::Postinst, "#!/bin/sh\nexit 3\n"),
        Package::new("lab-library", "1.0"),
    ];
    let worker = Worker::new(machine, packages);
    worker.apply(&["install lab-never"]);
    worker.has("lab-never", Some("install ok half-configured 1.0"));
    let automatic = || worker.machine.text("/var/lib/apt/extended_states").unwrap_or_default();
    assert!(automatic().contains("Package: lab-library\n"), "{}", automatic());
    worker.machine.call(&["apt-mark", "manual", "lab-library"]).well();
    let ran = worker.apply(&["install lab-never"]);
    assert_eq!(ran.failed.len(), 1, "{ran:#?}");
    let shown = worker.machine.call(&["apt-mark", "showmanual", "lab-library"]).well();
    assert_eq!(shown, "lab-library\n", "an apply leaves the mark");
    let undone = worker.undo();
    assert!(undone.failed.is_empty(), "{undone:#?}");
    worker.has("lab-never", None);
    worker.has("lab-library", Some("install ok installed 1.0"));
    let stays = undone.planned.iter().any(|it| it.contains("lab-library stays, which is marked"));
    assert!(stays, "{undone:#?}");
}
