//! A GPU that resets while a hook comes that nobody has asked for.

use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::laid::Laid;
use support::real;
use support::waiting::eventually;

use crate::charm::machines::worker;
use crate::charm::unit::Unit;

const SPEC: &str = "etc/cdi/amd.json";
const TAGS: &str = "etc/rocworker/concourse.env";

struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn daemon(laid: &Laid) -> Value {
    let said = Command::new(env!("CARGO_BIN_EXE_rocworker"))
        .arg("--root")
        .arg(laid.top())
        .args(["status", "--output", "json"])
        .output()
        .unwrap();
    let status: Value = serde_json::from_slice(&said.stdout).unwrap();
    status["daemon"].clone()
}

#[test]
fn real_update_status_takes_no_tag_that_the_daemon_keeps_while_a_gpu_resets() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    unit.run(laid.top(), "hooks/install").well();
    let (spec, tags, nodes) = (laid.text(SPEC), laid.text(TAGS), laid.text("capture.json"));
    let spec: Value = serde_json::from_str(&spec).unwrap();
    let given = spec["devices"][0]["containerEdits"]["deviceNodes"].as_array().unwrap();
    let render =
        given.iter().filter_map(|node| node["path"].as_str()).find(|path| path.contains("render")).unwrap();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    serve.arg("--root").arg(laid.top()).arg("serve").stdout(Stdio::null()).stderr(Stdio::null());
    let _serving = Serving(serve.spawn().unwrap());
    eventually("it has looked", || daemon(&laid)["set_up"] == true);
    laid.put("capture.json", &nodes.replace(&format!("{render}\""), "/dev/dri/renderD255\""));
    eventually("tags are kept", || daemon(&laid)["tags_held_until"].is_u64());
    let told = unit.run(laid.top(), "hooks/update-status").status();
    assert!(told.starts_with("waiting: A GPU has gone: the worker keeps its tags for a while"), "{told}");
    assert_eq!(laid.text(TAGS), tags);
    laid.put("capture.json", &nodes);
    eventually("it is back", || daemon(&laid)["tags_held_until"].is_null());
    let told = unit.run(laid.top(), "hooks/update-status").status();
    assert!(told.starts_with("active: "), "{told}");
    assert_eq!(laid.text(TAGS), tags);
}
