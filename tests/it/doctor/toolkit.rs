//! What doctor says of AMD's container toolkit where it is installed: a stand-in of its name, which writes a spec.

use lab::key::Key;
use lab::repository::Repository;
use lab::server::Server;
use lab::{standins, systems};
use serde_json::Value;

const PROGRAM: &str = "/usr/bin/rocworker";
/// What the stand-in writes.
const SPEC: &str = "/usr/share/amd-container-toolkit/spec.json";

#[test]
fn real_the_toolkits_spec_is_held_against_ours_and_a_difference_is_explained() {
    let Some(machine) = systems::this() else { return };
    machine.put_program(env!("CARGO_BIN_EXE_rocworker").as_ref(), PROGRAM);
    let check = || {
        let said = machine.call(&[PROGRAM, "--output", "json", "doctor"]).stdout;
        let answer: Value = serde_json::from_str(&said).unwrap();
        let mut checks = answer["checks"].as_array().unwrap().iter();
        let check = checks.find(|check| check["name"] == "toolkit").unwrap();
        ["status", "evidence", "remedy"].map(|key| check[key].as_str().unwrap_or("").to_owned())
    };
    assert_eq!(check()[..2], ["skipped", "not installed, and nothing here needs it"]);

    let ours = machine.call(&[PROGRAM, "cdi", "generate", "--file", "-"]).well();
    let toolkit = standins::container_toolkit("1.3.0", &ours);
    let mut repository = Repository::new(standins::ORIGIN, "jammy", "main").with([toolkit]);
    let key = Key::generate("AMD's stand-in");
    let server = Server::start(&repository.release(&key));
    machine.add_source(&repository, &server.url(), &key);
    machine.apt_get(&["update"]).well();
    machine.apt_get(&["install", "amd-container-toolkit"]).well();
    assert_eq!(check()[..2], ["ok", "would describe the same GPUs by the same names"]);

    machine.put(SPEC, ours.replace("0.5.0", "0.6.0"));
    let [status, evidence, remedy] = check();
    assert_eq!((status.as_str(), remedy.is_empty()), ("warning", false));
    assert!(evidence.contains("cdiVersion 0.6.0 where rocworker's is 0.5.0, since podman 4.3"), "{evidence}");

    machine.put(SPEC, "<html>\u{1b}[31m");
    let [status, evidence, _] = check();
    assert_eq!(status, "warning");
    assert!(evidence.starts_with("its spec is not one: "), "{evidence}");
    machine.put_script("/usr/bin/amd-ctk", "#!/bin/sh\necho 'no driver' >&2\nexit 3\n");
    let [status, evidence, _] = check();
    assert_eq!(status, "warning");
    assert!(evidence.contains("amd-ctk cdi generate") && evidence.ends_with(": no driver"), "{evidence}");
}
