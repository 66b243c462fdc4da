//! `compute-runtime: rocm`, said explicitly: AMD's container toolkit and rocm-smi come, and the worker is ready where they
//! cannot.

use lab::server::Misbehaviour;
use lab::systems;

use crate::packages::worker::{Worker, amds};

const TOOLKIT: &str = "amd-container-toolkit";
const ROCM_SMI: &str = "rocm-smi-lib";

#[test]
#[ignore = "cargo xtask test --all"]
fn real_rocm_said_explicitly_installs_the_tools_and_keep_and_auto_do_not() {
    let Some(machine) = systems::this() else { return };
    let worker = Worker::new(machine, amds());
    let packages = worker.machine.packages();
    for without in [
        "compute-runtime: auto",
        "",
        "compute-runtime: rocm\npackages: {container-toolkit: keep, rocm-smi: keep}",
    ] {
        worker.configure(without);
        worker.run(&["apply"]).well();
        assert_eq!(worker.machine.packages(), packages, "{without}");
    }
    worker.configure("compute-runtime: rocm");
    worker.run(&["apply"]).well();
    worker.has(TOOLKIT, Some("install ok installed 1.3.0"));
    worker.has(ROCM_SMI, Some("install ok installed 7.8.0.70204-1"));
    let again = worker.run(&["apply"]).well();
    assert!(again.ends_with("Already in sync; no changes.\n"), "{again}");
    // One of the two is kept, and goes again.
    worker.configure("compute-runtime: rocm\npackages: {rocm-smi: keep}");
    worker.run(&["apply"]).well();
    worker.has(ROCM_SMI, None);
    worker.has(TOOLKIT, Some("install ok installed 1.3.0"));
    worker.run(&["undo"]).well();
    assert_eq!(worker.machine.packages(), packages);
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_worker_without_the_tools_is_ready_and_says_what_is_missing() {
    let Some(machine) = systems::this() else { return };
    let worker = Worker::new(machine, amds());
    let nobody = lab::server::nobody();
    let (index, url) = (worker.repository.path_of_index(), worker.server.url());
    for (is_reached, cause) in [(false, "rocm.gpg.key could not be fetched"), (true, "404")] {
        worker.configure("compute-runtime: rocm");
        if is_reached {
            worker.server.misbehave(&index, Misbehaviour::Status(404));
        } else {
            let config = worker.machine.text("/etc/rocworker/config.yaml").unwrap();
            worker.machine.put("/etc/rocworker/config.yaml", config.replace(&url, &nobody));
        }
        let applied = worker.run(&["apply"]);
        // The apply succeeds, and the GPUs are published.
        assert_eq!(applied.status.code(), Some(0), "{applied:?}");
        assert!(worker.machine.text("/etc/cdi/amd.json").is_some(), "{applied:?}");
        let said = worker.json(&["apply"]);
        assert_eq!(said["failed"].as_array().unwrap().len(), 0, "{said:#}");
        let notes = said["notes"].as_array().unwrap();
        let note = notes.iter().find(|note| note["about"] == "packages").unwrap();
        let text = note["text"].as_str().unwrap();
        assert!(text.contains(TOOLKIT) && text.contains(ROCM_SMI) && text.contains(cause), "{text}");
        assert_eq!(note["problem"], false, "{said:#}");
        let status = worker.run(&["status"]);
        for name in [TOOLKIT, ROCM_SMI] {
            assert!(status.stdout.contains(&format!("package:{name}")), "{status:?}");
            worker.has(name, None);
        }
        let doctor = worker.json(&["doctor"]);
        let checks = doctor["checks"].as_array().unwrap();
        for tool in ["amd-ctk", "rocm-smi"] {
            let check = checks.iter().find(|check| check["subject"] == tool).unwrap();
            assert_eq!(check["status"], "warning", "{check:#}");
            assert!(check["evidence"].as_str().unwrap().contains("compute-runtime: rocm"), "{check:#}");
        }
    }
    // What is asked for by its own key is a failure as before.
    worker.configure("compute-runtime: rocm\npackages: {rocm-smi: install}");
    let applied = worker.run(&["apply"]);
    assert_eq!(applied.status.code(), Some(1), "{applied:?}");
    worker.server.behave();
    worker.configure("compute-runtime: rocm");
    worker.run(&["apply"]).well();
    worker.has(TOOLKIT, Some("install ok installed 1.3.0"));
    worker.has(ROCM_SMI, Some("install ok installed 7.8.0.70204-1"));
    // As rocm-core does.
    worker.machine.call(&["ln", "-sfn", "rocm-7.2.4", "/opt/rocm"]).well();
    let found = worker.json(&["doctor"]);
    let checks = found["checks"].as_array().unwrap();
    // In /opt/rocm/bin, which is in no PATH.
    let check = checks.iter().find(|check| check["subject"] == "rocm-smi").unwrap();
    assert!(!check["evidence"].as_str().unwrap().contains("not installed"), "{check:#}");
    worker.run(&["undo"]).well();
}
