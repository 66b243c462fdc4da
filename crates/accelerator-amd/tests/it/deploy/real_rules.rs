//! The ProviderConfig's rule for device nodes, evaluated by Google's CEL.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use support::real;
use support::said::Said;

use super::{TOOLS, script, yaml};

fn judged(tools: &Path, rule: &str) -> Said {
    let nodes = ["/dev/dri/renderD128", "/dev/dri/renderD129", "/dev/dri/card0", "/dev/kfd", "/dev/nvidia0"];
    let mut child = script(tools, "rules.py")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(json!([rule, nodes]).to_string().as_bytes()).unwrap();
    Said::from(child.wait_with_output().unwrap())
}

#[test]
fn real_cel_keeps_the_render_nodes_that_the_provider_names() {
    let Some([tools]) = real::require_made([TOOLS], &[]) else { return };
    let provider = yaml("provider-config.yaml");
    let mount = &provider["spec"]["hypervisor"]["deviceMount"];
    for rule in ["deviceMountRule", "partitionedDeviceMountRule"] {
        let kept = judged(&tools, mount[rule].as_str().unwrap()).well();
        assert_eq!(kept, "[\"/dev/dri/renderD128\", \"/dev/dri/renderD129\"]\n", "{rule}");
    }
    // The hypervisor keeps every node where a rule is wrong, so a wrong rule must be noticed here.
    for wrong in ["device.hostPath.startsWith(", "device[\"path\"] == \"\"", "nodes"] {
        judged(&tools, wrong).badly();
    }
    assert_eq!(mount["sharedDevices"], json!(["/dev/kfd", "/dev/dri/card*"]));
}
