//! What `status` says of GPUs and paths.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::setup::laid::Laid;

#[test]
fn status_tells_of_a_chosen_gpu_that_is_gone_and_of_what_is_configured_and_not_done() {
    let laid = Laid::demo("gpu-device-ids: 0\n");
    laid.run(&["apply"]).success();
    let memory = laid.text("var/lib/rocworker/memory.json");
    let status = laid.json(&["status"]);
    let uuid = status["chosen"][0]["uuid"].as_str().unwrap();
    laid.put("var/lib/rocworker/memory.json", &memory.replace(uuid, "GPU-00c0ffee00c0ffee"));
    for command in ["status", "plan", "apply"] {
        laid.run(&[command]).code(2);
    }
    let status = laid.json(&["status"]);
    assert_eq!(status["chosen"][0]["index"], json!(null));
    assert!(status["problem"].as_str().unwrap().contains("that GPU is not there any more"), "{status:#}");
    assert!(!status["ours"].as_array().unwrap().is_empty());

    let laid = Laid::demo("");
    fs::remove_file(laid.path("usr/lib/rocworker/runc-amd-wrapper")).unwrap();
    // A link is not taken for the program.
    std::os::unix::fs::symlink("/bin/true", laid.path("usr/lib/rocworker/runc-amd-wrapper")).unwrap();
    laid.put("usr/local/lib/rocworker/runc-amd-wrapper", "");
    fs::set_permissions(
        laid.path("usr/local/lib/rocworker/runc-amd-wrapper"),
        fs::Permissions::from_mode(0o777),
    )
    .unwrap();
    laid.run(&["plan", "--exit-code"]).code(3);
}

/// A laptop for podman, on which nobody has run apply.
#[test]
fn a_spec_that_cdi_generate_wrote_is_no_drift() {
    let laid = Laid::demo("");
    laid.run(&["cdi", "generate"]).success();
    let (code, said) = laid.fails(&["status"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("/etc/cdi/amd.json") && !said.contains("to apply"), "{said}");
    assert!(said.contains("\n1 managed path: apply would make "), "{said}");
    laid.run(&["apply"]).success();
    laid.put("etc/cdi/amd.json", "{}\n");
    let (code, said) = laid.fails(&["status"]);
    assert!(code == 3 && said.contains("rocworker apply puts it right\n"), "{said}");
}

#[test]
fn status_says_of_each_path_what_is_so() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    // What somebody has changed stays when it is managed no longer.
    laid.put("etc/rocworker/wrapper.json", "{}\n");
    laid.put("etc/rocworker/config.yaml", "compute-runtime: none\n");
    laid.run(&["apply"]);
    let (code, said) = laid.fails(&["status"]);
    assert_eq!(code, 3, "{said}");
    let row = said.lines().find(|line| line.contains("wrapper.json")).unwrap();
    assert!(row.starts_with("left "), "{said}");
    assert!(said.ends_with("and the machine is not in sync\n"), "{said}");

    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    fs::remove_file(laid.path("etc/cdi/amd.json")).unwrap();
    fs::create_dir(laid.path("etc/cdi/amd.json")).unwrap();
    let (code, said) = laid.fails(&["status"]);
    assert_eq!(code, 3, "{said}");
    let row = said.lines().find(|line| line.contains("amd.json")).unwrap();
    assert!(row.starts_with("blocked "), "{said}");
}

#[test]
fn what_an_apply_beneath_another_root_skips_is_no_drift() {
    let laid = Laid::demo("compute-runtime: rocm\n");
    laid.put("etc/os-release", "ID=ubuntu\nVERSION_ID=\"24.04\"\nVERSION_CODENAME=noble\n");
    laid.put("var/lib/dpkg/status", "");
    laid.run(&["apply"]).success();
    let plan = laid.json(&["plan"]);
    let sources = |finding: &serde_json::Value| finding["path"].as_str().unwrap().ends_with(".sources");
    let skipped = plan["notes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|note| note["about"].as_str().unwrap().ends_with(".sources"));
    assert_eq!(skipped.count(), 2, "{plan:#}");
    assert!(!plan["changes"].as_array().unwrap().iter().any(sources), "{plan:#}");
    let again = laid.run(&["apply"]).success();
    let said = String::from_utf8_lossy(&again.get_output().stdout).into_owned();
    assert!(said.contains("Already in sync"), "{said}");
    laid.run(&["status"]).success();
    laid.run(&["plan", "--exit-code"]).success();
}

#[test]
fn status_prints_the_phase_and_the_configuration_of_the_last_apply() {
    let laid = Laid::demo("gpu-device-ids: 0\n");
    let status = laid.json(&["status"]);
    assert_eq!((&status["phase"], &status["configuration"]), (&json!("unmanaged"), &json!(null)));

    laid.run(&["apply"]).success();
    let status = laid.json(&["status"]);
    let sha256 = &laid.json(&["plan"])["config_sha256"];
    let configuration = json!({"path": "/etc/rocworker/config.yaml", "sha256": sha256});
    assert_eq!((&status["phase"], &status["configuration"]), (&json!("applied"), &configuration));

    // An undo keeps a file that somebody changed.
    laid.put("etc/cdi/amd.json", "{}\n");
    laid.run(&["undo"]);
    assert_eq!(laid.json(&["status"])["phase"], json!("undone"));
    laid.run(&["undo", "--force"]).success();
    assert_eq!(laid.json(&["status"])["phase"], json!("unmanaged"));
}
