//! Managed files that somebody has changed, and what cannot be read for a moment.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::json;

use crate::setup::laid::Laid;

#[test]
fn contested_stays_contested_and_a_person_may_ask_for_the_spec_by_name() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    for _ in 0..3 {
        laid.put("etc/cdi/amd.json", "{\"kind\":\"amd.com/gpu\"}");
        laid.run(&["apply"]).success();
    }
    laid.put("etc/cdi/amd.json", "{\"kind\":\"amd.com/gpu\"}");
    let receipt = laid.text("var/lib/rocworker/receipt.json");
    let at = receipt.find("\"last\": 1").unwrap() + 8;
    // Long ago: a rival that never stops is not repaired three times a day for ever.
    laid.put("var/lib/rocworker/receipt.json", &format!("{}1{}", &receipt[..at], &receipt[at + 10..]));
    assert_eq!(laid.json(&["apply"])["changes"], json!([]));
    laid.run(&["cdi", "generate"]).success();
    laid.run(&["status"]).success();
}

#[test]
fn a_file_of_ours_that_another_user_owns_is_put_right() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    let policy = laid.path("etc/rocworker/wrapper.json");
    if std::os::unix::fs::chown(&policy, Some(1000), Some(1000)).is_err() {
        // An ordinary user cannot give a file away, and nobody could have.
        return;
    }
    laid.run(&["status"]).code(3);
    laid.run(&["apply"]).success();
    assert_ne!(fs::metadata(&policy).unwrap().uid(), 1000);
    laid.run(&["status"]).success();
}

#[test]
fn what_cannot_be_looked_at_is_not_taken_back() {
    let laid = Laid::with_engines("");
    laid.run(&["apply"]).success();
    let applied = laid.tree();
    // The wrapper's program, for a moment.
    let program = laid.path("usr/lib/rocworker/runc-amd-wrapper");
    fs::rename(&program, laid.path("aside")).unwrap();
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o777)).unwrap();
    let (code, said) = laid.fails(&["apply"]);
    assert!(code == 1 && said.contains("until then the configuration of engines stays as it is"), "{said}");
    fs::rename(laid.path("aside"), &program).unwrap();
    assert_eq!(laid.tree(), applied);
    // The machine's devices.
    fs::rename(laid.path("sys"), laid.path("sys.aside")).unwrap();
    let (code, said) = laid.fails(&["apply"]);
    assert!(code == 0 && said.contains("rocworker cannot tell which GPUs this machine has"), "{said}");
    assert_eq!(laid.tree(), applied);
    fs::rename(laid.path("sys.aside"), laid.path("sys")).unwrap();
    laid.run(&["undo"]).success();
}
