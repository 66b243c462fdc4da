//! The container toolkit and rocm-smi: installed, kept, reverted.

use lab::package::Package;
use lab::systems;

use crate::packages::worker::{KEYRING, Worker, amds};

const SOURCES: &str = "/etc/apt/sources.list.d/rocworker-rocm.sources";

#[test]
fn real_the_tools_are_installed_and_undo_gives_the_machine_back() {
    for (system, machine) in systems::each() {
        let worker = Worker::new(machine, amds());
        worker.machine.apt_get(&["update"]).well();
        let (packages, tree) = (worker.machine.packages(), || {
            worker.machine.tree(&["etc", "usr/local", "var/lib/apt", "var/lib/dpkg/info"])
        });
        worker.configure("packages: {container-toolkit: install, rocm-smi: install}");
        if system == "trixie" {
            // trixie is not one of the systems that AMD's suites are known for.
            let planned = worker.run(&["plan"]);
            assert!(planned.stdout.contains("this is Debian GNU/Linux 13 (trixie), and packages of AMD's are installed on Ubuntu 22.04, Ubuntu 24.04, Debian 12 only"), "{planned:?}");
            let config = worker.machine.text("/etc/rocworker/config.yaml").unwrap();
            worker
                .machine
                .put("/etc/rocworker/config.yaml", config.replace("{url: ", "{suite: jammy, url: "));
        }
        let before = tree();

        // apt's own words, before anything is written: it needs the key for that.
        let dry = worker.run(&["apply", "--dry-run"]).well();
        assert!(
            dry.contains("Inst rocm-smi-lib (7.8.0.70204-1") && !dry.contains("NO_PUBKEY"),
            "{system}: {dry}"
        );
        let off = tree().differences(&[&before]);
        assert!(off.is_empty(), "{system}: a dry run writes nothing:\n{}", off.join("\n"));

        let asked = worker.server.requests().len();
        let plan = worker.run(&["plan"]);
        assert!(plan.stdout.contains("package:rocm-smi-lib"), "{plan:?}");
        assert_eq!(worker.server.requests().len(), asked, "{system}: a plan fetches nothing");
        let applied = worker.run(&["apply"]);
        for (stream, line) in [
            (&applied.stderr, "installing package:rocm-smi-lib\n"),
            (&applied.stderr, "fetching /etc/apt/keyrings/rocworker-amd.gpg\n"),
            (&applied.stdout, "installed package:rocm-smi-lib: "),
        ] {
            let begins = |text: &str| format!("\n{text}").matches(&format!("\n{line}")).count();
            assert_eq!(
                begins(stream),
                begins(&format!("{}{}", applied.stdout, applied.stderr)),
                "{applied:?}"
            );
            assert!(begins(stream) >= 1, "{line}: {applied:?}");
        }
        applied.well();
        worker.has("amd-container-toolkit", Some("install ok installed 1.3.0"));
        worker.has("rocm-smi-lib", Some("install ok installed 7.8.0.70204-1"));
        worker.has("lab-library", Some("install ok installed 1.0"));
        let policy = worker.machine.call(&["apt-cache", "policy", "rocm-smi-lib"]).well();
        assert!(policy.contains(" 1001\n"), "{system}: the pin is in force: {policy}");

        let asked = worker.server.requests().len();
        let again = worker.run(&["apply"]).well();
        assert!(again.ends_with("Already in sync; no changes.\n"), "{system}: {again}");
        assert_eq!(worker.server.requests().len(), asked, "{system}");
        worker.run(&["status"]).well();

        worker.run(&["undo"]).well();
        assert_eq!(worker.machine.packages(), packages, "{system}");
        let off = tree().differences(&[&before]);
        assert!(off.is_empty(), "{system}:\n{}", off.join("\n"));
        // dpkg takes an empty /opt with it where no package holds it.
        assert!(!worker.machine.outside("/opt/rocm-7.2.4").exists(), "{system}");
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_one_that_is_kept_or_absent_and_what_somebody_has_installed() {
    let Some(machine) = systems::this() else { return };
    let worker = Worker::new(machine, amds());
    worker.machine.add_source(&worker.repository, &worker.server.url(), &worker.key);
    worker.machine.apt_get(&["update"]).well();
    worker.machine.apt_get(&["install", "rocm-smi-lib"]).well();
    worker.configure("packages: {rocm-smi: keep}");
    worker.run(&["apply"]).well();
    worker.has("rocm-smi-lib", Some("install ok installed 7.8.0.70204-1"));

    // AMD's repository twice, with two keys, and apt would do nothing at all any more.
    worker.configure("packages: {rocm-smi: install, container-toolkit: install}");
    let applied = worker.json(&["apply"]);
    assert!(applied.to_string().contains("/etc/apt/sources.list.d/lab.list already"), "{applied:#}");
    assert!(worker.machine.text(SOURCES).is_none());
    assert!(!worker.machine.outside(KEYRING).exists());
    worker.has("amd-container-toolkit", Some("install ok installed 1.3.0"));

    worker.configure("packages: {rocm-smi: absent}");
    worker.run(&["apply"]).well();
    worker.has("amd-container-toolkit", None);
    let gone = worker.machine.package("rocm-smi-lib");
    assert!(gone.is_none_or(|status| !status.contains("installed")), "absent");
    worker.run(&["undo"]).well();
    worker.has("rocm-smi-lib", Some("install ok installed 7.8.0.70204-1"));
}

#[test]
fn real_the_configured_proxy_is_used() {
    let Some(machine) = systems::this() else { return };
    let worker = Worker::new(machine, amds());
    let proxy = worker.server.url();
    worker.configure(&format!("packages: {{rocm-smi: install, proxy: \"{proxy}\"}}"));
    let config = worker.machine.text("/etc/rocworker/config.yaml").unwrap();
    let (head, repositories) = config.split_once("repositories:").unwrap();
    let elsewhere = repositories.replace(&proxy, "http://repo.radeon.example");
    worker.machine.put("/etc/rocworker/config.yaml", format!("{head}repositories:{elsewhere}"));
    worker.run(&["apply"]).well();
    worker.has("rocm-smi-lib", Some("install ok installed 7.8.0.70204-1"));
    let requests = worker.server.requests();
    assert!(requests.iter().all(|it| format!("{it:?}").contains("repo.radeon.example")), "{requests:#?}");
    worker.run(&["undo"]).well();
}

#[test]
fn real_rocm_comes_from_apt() {
    let Some(machine) = systems::this() else { return };
    let mut packages = amds();
    packages.push(Package::new("rocm-dev", "7.2.4.70204-1"));
    let worker = Worker::new(machine, packages);
    let before = worker.machine.packages();
    worker.configure("rocm: {install: apt, packages: [rocm, rocm-dev]}");
    worker.run(&["apply"]).well();
    worker.has("rocm", Some("install ok installed 7.2.4.70204-1"));
    worker.has("rocm-dev", Some("install ok installed 7.2.4.70204-1"));
    // Fewer are wanted: what came for the sake of the one that stays is still needed.
    worker.configure("rocm: {install: apt, packages: [rocm]}");
    worker.run(&["apply"]).well();
    worker.has("rocm-dev", None);
    worker.has("rocm-smi-lib", Some("install ok installed 7.8.0.70204-1"));
    worker.run(&["undo"]).well();
    assert_eq!(worker.machine.packages(), before);
}
