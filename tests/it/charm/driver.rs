//! A driver that real apt and dkms have brought, when the charm goes.

use lab::systems;
use serde_json::Value;
use support::real;
use support::said::Said;

use crate::charm::machines::in_context;
use crate::charm::record::golden;
use crate::charm::unit::Unit;
use crate::packages::driver::worker::{DRIVER, PROGRAM, Worker};

const RECEIPT: &str = "/var/lib/rocworker/receipt.json";
const STATE: &str = "/var/lib/rocworker/charm.json";

/// The paths of the receipt.
fn ours(worker: &Worker) -> Vec<String> {
    let Some(text) = worker.machine.text(RECEIPT) else { return Vec::new() };
    let receipt: Value = serde_json::from_str(&text).unwrap();
    let entries = receipt["entries"].as_array().unwrap().iter();
    entries.map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_driver_stays_at_remove_with_what_came_beside_it_unless_it_is_asked_for() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let Some((machine, headers)) = systems::with_headers() else { return };
    let (worker, _debian) = Worker::new(machine, &headers, true);
    let packages = worker.machine.packages();
    let unit = Unit::in_folder(&worker.machine.shared(), "rocworker/0");
    let hook = |path: &str| {
        unit.forget();
        let mut command = in_context(&worker.machine, &unit, path, &[PROGRAM, "hook"]);
        Said::from(command.output().unwrap()).well();
        golden(&unit.pending())
    };
    unit.options(r#"{"restart":"never"}"#);
    hook("hooks/install");
    let charm = worker.machine.text(STATE).unwrap();

    // AMD's key is not the laboratory's, and no option names another: the driver is applied beside the charm.
    worker.machine.put("/etc/driver.yaml", worker.configuration("30.30.3", &worker.amd.server.url()));
    let applied = worker.json(&["--config", "/etc/driver.yaml", "apply"]);
    assert_eq!(applied["failed"], serde_json::json!([]), "{applied:#}");
    let has_driver =
        || worker.machine.package("amdgpu-dkms") == Some(format!("install ok installed {DRIVER}"));
    assert!(has_driver() && ours(&worker).iter().any(|path| path == "/etc/cdi/amd.json"));

    let told = hook("hooks/remove");
    assert!(told.contains("the driver stays, and with it what came from AMD's repositories"), "{told}");
    assert!(has_driver());
    let left = ours(&worker);
    let is_of_packages = |path: &String| path.starts_with("package:") || path.starts_with("/etc/apt/");
    assert!(
        left.iter().all(is_of_packages) && left.iter().any(|path| path == "package:amdgpu-dkms"),
        "{left:?}"
    );
    assert!(left.iter().any(|path| path.starts_with("/etc/apt/sources.list.d/")), "{left:?}");
    assert_eq!((worker.machine.text("/etc/cdi/amd.json"), worker.machine.text(STATE)), (None, None));

    // As if it had been asked for then.
    worker.machine.put(STATE, charm);
    unit.options(r#"{"restart":"never","remove-driver":true}"#);
    let told = hook("hooks/remove");
    assert!(!told.contains("the driver stays"), "{told}");
    assert_eq!((ours(&worker), worker.machine.packages()), (Vec::new(), packages));
}
