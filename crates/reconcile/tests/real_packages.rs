//! Packages that come and go with real apt and dpkg, on a copy of this system and on a second release of Debian.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, lays out files, and runs itself in the machine"
)]

mod machine;
mod packages;

use lab::package::Package;
use lab::systems;
use packages::Worker;

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
fn child() {
    packages::child();
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
