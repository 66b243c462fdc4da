//! A driver by real apt, dpkg, dkms and kmod: the real program in a copy of this system, with the headers of a kernel of
//! Debian's. The driver is a trivial module under AMD's name; AMD's own repository is not reached from here.

use std::path::Path;

use lab::repository::Repository;
use lab::server::{Misbehaviour, Server};
use lab::{standins, systems};
use packages::driver::module;
use reconcile::command::Programs;
use serde_json::Value;

use crate::packages::driver::worker::{DRIVER, PROGRAM, SOURCE, Worker};

const RECEIPT: &str = "/var/lib/rocworker/receipt.json";

/// The build for which a restart is pending.
fn module(receipt: &str) -> Value {
    let receipt: Value = serde_json::from_str(receipt).unwrap();
    let pending = receipt["pending"].as_array().unwrap();
    pending.iter().find(|it| it["effect"] == "reboot").unwrap()["module"].clone()
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_dkms_and_its_tree_say_the_same_of_each_state() {
    let Some((machine, headers)) = systems::with_headers() else { return };
    let (worker, _debian) = Worker::new(machine, &headers, true);
    worker.tell_of_amd();
    let machine = &worker.machine;
    let source = format!("amdgpu/{SOURCE}");
    machine.apt_get(&["install", "--no-install-recommends", "amdgpu-dkms"]).well();
    let agree = |state: &str| {
        let status = machine.call(&["dkms", "status"]).well();
        assert!(status.ends_with(&format!("{state}\n")), "{status}");
        assert_eq!(worker.state(), status);
    };
    agree(": added");
    machine.apt_get(&["install", "--no-install-recommends", &headers.package()]).well();
    agree(": installed");
    machine.call(&["dkms", "uninstall", &source, "-k", &worker.release]).well();
    agree(": built");
    machine.call(&["dkms", "unbuild", &source, "-k", &worker.release]).well();
    agree(": added");
    machine.call(&["dkms", "install", &source, "-k", &worker.release]).well();
    agree(": installed");
    machine.apt_get(&["purge", "amdgpu-dkms"]).well();
    assert_eq!((worker.state(), machine.call(&["dkms", "status"]).well()), (String::new(), String::new()));
}

#[test]
fn real_a_driver_is_brought_built_and_told_from_the_one_that_runs() {
    let Some((machine, headers)) = systems::with_headers() else { return };
    let (worker, _debian) = Worker::new(machine, &headers, true);
    let before = worker.machine.packages();
    worker.configure();

    let plan = worker.json(&["plan"]);
    let changes: Vec<&str> =
        plan["changes"].as_array().unwrap().iter().filter_map(|change| change["path"].as_str()).collect();
    let packages = changes.iter().filter_map(|path| path.strip_prefix("package:"));
    // What this system has already is not listed: setuptools.
    let expected = [headers.package(), "amdgpu-dkms".to_owned()];
    assert_eq!(packages.filter(|name| !name.starts_with("python3")).collect::<Vec<_>>(), expected);
    assert!(changes.contains(&"/etc/apt/sources.list.d/rocworker-amdgpu.sources"), "{changes:?}");

    let applied = worker.json(&["apply"]);
    assert_eq!(applied["failed"], serde_json::json!([]), "{applied:#}");
    assert_eq!(worker.state(), format!("amdgpu/{SOURCE}, {}, x86_64: installed\n", worker.release));
    // The laid-out machine has another build loaded, which no new package changes.
    let reboot = "the driver 30.30.3 is built, and another build of amdgpu is loaded";
    let is_owed = |effects: &Value| {
        let mut effects = effects.as_array().unwrap().iter();
        effects.any(|it| it["effect"] == "reboot" && it["reason"].as_str().unwrap().starts_with(reboot))
    };
    assert!(is_owed(&applied["effects"]), "{applied:#}");
    assert!(worker.machine.text("/run/reboot-required").is_some());
    let [status, evidence, remedy] = worker.check("amdgpu");
    assert_eq!(
        (status.as_str(), evidence.as_str()),
        ("warning", "the module that runs is another one than dkms has built")
    );
    assert!(remedy.starts_with("reboot"), "{remedy}");
    assert_eq!(worker.check("driver.install")[..2], ["ok", "the driver 30.30.3 is installed"]);
    assert!(is_owed(&worker.json(&["status"])["pending"]));
    assert!(is_owed(&worker.json(&["plan"])["effects"]));

    // Booted anew, and still another module: no second reboot.
    let receipt = worker.machine.text(RECEIPT).unwrap();
    let asked = module(&receipt);
    let boot = asked["boot_id"].as_str().unwrap();
    worker.machine.put(RECEIPT, receipt.replace(boot, "an-earlier-boot"));
    let [status, evidence, remedy] = worker.check("amdgpu");
    assert_eq!(status, "warning");
    assert!(
        evidence.contains("was rebooted for amdgpu") && remedy.contains("update-initramfs"),
        "{evidence}: {remedy}"
    );
    worker.machine.put(RECEIPT, &*receipt);

    // Killed once the package had come: the next run looks at it, and remembers the same.
    worker.machine.put("/var/lib/rocworker/memory.json", "{\"schema_version\": 1, \"unverified\": true}");
    assert!(is_owed(&worker.json(&["apply"])["effects"]));
    let looked: Value =
        serde_json::from_str(&worker.machine.text("/var/lib/rocworker/memory.json").unwrap()).unwrap();
    let again = worker.machine.text(RECEIPT).unwrap();
    assert_eq!((module(&again), looked.get("unverified")), (asked, None));

    let again = worker.run(&["apply"]);
    assert!(again.stdout.contains("Nothing changed; "), "{again:?}");
    let undone = worker.json(&["undo"]);
    assert!(!is_owed(&undone["effects"]), "nothing is left that a restart would bring: {undone:#}");
    assert!(worker.machine.text("/run/reboot-required").is_none());
    assert!(worker.machine.text("/var/lib/rocworker/receipt.json").is_none());
    assert_eq!(worker.machine.packages(), before);
    assert_eq!(worker.state(), "");
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_changed_release_comes_by_one_apply_and_by_a_saved_plan_only_if_it_names_it() {
    let Some((machine, headers)) = systems::with_headers() else { return };
    let (worker, _debian) = Worker::new(machine, &headers, true);
    let before = worker.machine.packages();
    worker.configure();
    assert_eq!(worker.json(&["apply"])["failed"], serde_json::json!([]));
    let has = |version: &str| {
        let status = format!("install ok installed {version}");
        assert_eq!(worker.machine.package("amdgpu-dkms"), Some(status));
    };
    has(DRIVER);
    let newer = "1:6.16.13.30300400-2341068.22.04";
    let mut repository =
        Repository::new(standins::ORIGIN, "jammy", "main").with([standins::amdgpu_dkms(newer)]);
    let server = Server::start(&repository.release(&worker.amd.key));
    worker.configure_as("30.30.4", &server.url());
    let notes = worker.json(&["plan", "--out", "/plan.json"])["notes"].to_string();
    assert!(notes.contains("apt has not read AMD's repository of 30.30.4 yet"), "{notes}");
    let applied = worker.json(&["apply", "/plan.json"]);
    assert_eq!(applied["failed"], serde_json::json!([]), "{applied:#}");
    has(DRIVER);

    // As before that plan: apt knows nothing of the new repository.
    worker.configure();
    worker.json(&["apply"]);
    worker.configure_as("30.30.4", &server.url());
    let applied = worker.json(&["apply"]);
    assert_eq!(applied["failed"], serde_json::json!([]), "{applied:#}");
    has(newer);
    let changes = applied["changes"].as_array().unwrap().iter();
    assert_eq!(changes.filter(|it| it["path"] == "package:amdgpu-dkms").count(), 1, "{applied:#}");
    assert!(!applied["notes"].to_string().contains("has not read"), "{applied:#}");
    // The restart that the older one waits for is the newer one's by now.
    let pending = worker.json(&["status"])["pending"].to_string();
    assert!(pending.contains("the driver 30.30.4 is built") && !pending.contains("30.30.3"), "{pending}");
    assert!(worker.run(&["apply"]).stdout.contains("Nothing changed; "));
    worker.run(&["undo"]).well();
    assert_eq!(worker.machine.packages(), before);
}

#[test]
fn real_a_kernel_whose_headers_are_gone_from_the_mirror_stops_it_before_anything_is_touched() {
    let Some((machine, headers)) = systems::with_headers() else { return };
    let (worker, _debian) = Worker::new(machine, &headers, false);
    worker.configure();
    let (packages, sources) = (worker.machine.packages(), || worker.machine.tree(&["etc/apt", "usr/src"]));
    let before = sources();
    let applied = worker.json(&["apply"]);
    let said = applied["notes"].to_string();
    assert!(said.contains(&format!("apt has no {}", headers.package())), "{said}");
    assert_eq!(worker.machine.packages(), packages);
    assert_eq!(sources().differences(&[&before]), Vec::<String>::new());
    let [status, evidence, _] = worker.check("driver.install");
    assert_eq!(status, "failed");
    assert!(evidence.contains(&headers.package()), "{evidence}");
}

#[test]
fn real_a_boot_asks_apt_nothing_where_a_plan_does() {
    let Some((machine, headers)) = systems::with_headers() else { return };
    let (worker, _debian) = Worker::new(machine, &headers, true);
    worker.configure();
    worker.machine.put_script("/usr/bin/apt-cache", "#!/bin/sh\ntouch /asked\n");
    let booted = worker.json(&["boot"]);
    assert_eq!(worker.machine.text("/asked"), None);
    assert!(!booted["differs"].to_string().contains("package:"), "{booted:#}");
    worker.json(&["plan"]);
    assert!(worker.machine.text("/asked").is_some());
}

#[test]
fn real_the_environments_proxy_is_used_for_the_key_and_for_apt() {
    let Some((machine, headers)) = systems::with_headers() else { return };
    let (worker, _debian) = Worker::new(machine, &headers, true);
    let proxy = worker.amd.server.url();
    worker.configure();
    let config = worker.machine.text("/etc/rocworker/config.yaml").unwrap();
    worker.machine.put("/etc/rocworker/config.yaml", config.replace(&proxy, "http://amd.example"));
    // The proxy has nothing of the distribution's: the driver, whose headers it lacks, does not come.
    let proxy = format!("http_proxy={proxy}");
    let applied = worker.machine.call(&["env", &proxy, PROGRAM, "apply", "--output", "json"]);
    let applied: Value =
        serde_json::from_str(&applied.stdout).unwrap_or_else(|error| panic!("{error}: {applied:?}"));
    assert!(worker.machine.outside("/etc/apt/keyrings/rocworker-amd.gpg").exists(), "{applied:#}");
    let requests = worker.amd.server.requests();
    let asked = |path: &str| {
        requests.iter().any(|it| it.authority.as_deref() == Some("amd.example") && it.path.ends_with(path))
    };
    assert!(asked("/key.asc") && asked("/InRelease"), "{requests:#?}");
}

#[test]
fn real_a_key_without_an_end_is_given_up_and_nothing_is_told_to_apt() {
    let Some((machine, headers)) = systems::with_headers() else { return };
    let (worker, _debian) = Worker::new(machine, &headers, true);
    worker.configure();
    worker.amd.server.misbehave("/key.asc", Misbehaviour::Other(vec![0xc6; 3 << 20]));
    let applied = worker.json(&["apply"]);
    let failed = applied["failed"][0]["text"].as_str().unwrap();
    assert!(failed.contains("/key.asc could not be fetched: it has more than 1048576 bytes"), "{failed}");
    assert!(worker.machine.text("/etc/apt/sources.list.d/rocworker-amdgpu.sources").is_none());
    assert_eq!(worker.machine.package("amdgpu-dkms"), None);
    assert!(worker.machine.text("/etc/cdi/amd.json").is_some(), "what needs no package has come");
    assert_eq!(worker.machine.call(&["ls", "/tmp"]).well(), "");
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_kmods_word_on_a_built_module_is_understood() {
    let Some((machine, headers)) = systems::with_headers() else { return };
    let (worker, _debian) = Worker::new(machine, &headers, true);
    worker.tell_of_amd();
    let install = ["install", "--no-install-recommends", "amdgpu-dkms", &headers.package()];
    worker.machine.apt_get(&install).well();
    let file = format!("/lib/modules/{}/updates/dkms/amdgpu.ko", worker.release);
    let field =
        |name: &str| worker.machine.call(&["modinfo", "--field", name, &file]).well().trim().to_owned();
    let outside = worker.machine.outside(&file);
    let programs = Programs::in_folders("/usr/sbin:/usr/bin:/sbin:/bin");
    let read = module::in_file(&programs, &outside).unwrap().unwrap();
    assert_eq!(read.path, outside);
    assert_eq!(read.srcversion, Some(field("srcversion")));
    assert_eq!(module::in_file(&programs, Path::new("/nowhere/amdgpu.ko")).ok().flatten(), None);
}
