//! The policy's expressions, evaluated by Google's CEL on updates of a node.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde::Deserialize as _;
use serde_json::{Value, json};
use support::real;
use support::said::Said;

use super::{TOOLS, deployed, script, text};

const PLUGIN: &str = "system:serviceaccount:rocworker:rocworker-device-plugin";
const NODE: &str = "authentication.kubernetes.io/node-name";

/// An update of a node by the plugin's pod, which changes nothing.
fn update() -> Value {
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "worker-1",
            "resourceVersion": "17",
            "labels": {
                "kubernetes.io/hostname": "worker-1",
                "node-role.kubernetes.io/gpu-worker": "",
                "gpu": "true",
                "amd.com/gpu.vram": "192G",
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
            "managedFields": [{"manager": "kubelet", "operation": "Update"}],
        },
        "spec": {"podCIDR": "10.0.1.0/24", "taints": [{"key": "amd.com/gpu", "effect": "NoSchedule"}]},
        "status": {"capacity": {"amd.com/gpu": "8"}},
    });
    json!({
        "request": {
            "operation": "UPDATE",
            "name": "worker-1",
            "resource": {"group": "", "version": "v1", "resource": "nodes"},
            "userInfo": {
                "username": PLUGIN,
                "groups": ["system:serviceaccounts", "system:authenticated"],
                "extra": {NODE: ["worker-1"], "authentication.kubernetes.io/pod-name": ["rocworker-device-plugin-x"]},
            },
        },
        "object": node.clone(),
        "oldObject": node,
    })
}

/// Applies a merge patch (RFC 7396) to a part of the update.
fn patched(pointer: &str, patch: &Value) -> Value {
    let mut update = update();
    merge(update.pointer_mut(pointer).unwrap(), patch);
    update
}

fn merge(into: &mut Value, patch: &Value) {
    let Some(members) = patch.as_object() else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in members {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut into[key], value);
        }
    }
}

/// What is changed, and a word of each sentence that refuses it.
fn cases() -> Vec<(&'static str, Value, &'static [&'static str])> {
    let labels = |labels: Value| patched("/object/metadata", &json!({"labels": labels}));
    let no_labels = json!({"labels": null});
    let from_none = {
        let mut update = patched("/oldObject/metadata", &no_labels);
        update["object"]["metadata"]["labels"] = json!({"gpu": "true", "amd.com/gpu": "true"});
        update
    };
    let to_none = {
        let mut update = patched("/object/metadata", &no_labels);
        update["oldObject"]["metadata"]["labels"] = json!({"gpu": "true"});
        update
    };
    let bare = {
        let mut update = update();
        for side in ["object", "oldObject"] {
            update[side]["metadata"] = json!({"name": "worker-1"});
            update[side].as_object_mut().unwrap().remove("spec");
        }
        update["object"]["metadata"]["labels"] = json!({"gpu": "true"});
        update
    };
    vec![
        ("nothing", update(), &[]),
        (
            "each label that rocworker sets",
            labels(json!({
                "amd.com/gpu": "true",
                "amdgpu.com/gpu.present": "true",
                "amd.com/gpu.vram": "96G",
                "amd.com/gpu.cu-count.304": "4",
                "amd.com/gpu.compute-memory-partition": "cpx_nps4",
                "beta.amd.com/gpu.firmware.MEC.fw.177": "8",
            })),
            &[],
        ),
        ("labels of GPUs go", labels(json!({"gpu": null, "amd.com/gpu.vram": null})), &[]),
        ("the first labels of a node", from_none, &[]),
        ("the last labels of a node", to_none, &[]),
        ("a label of a node without labels, annotations and spec", bare, &[]),
        (
            "the server's own bookkeeping",
            patched("/object/metadata", &json!({"managedFields": [{"manager": "rocworker-device-plugin"}]})),
            &[],
        ),
        ("a foreign label", labels(json!({"team": "vision"})), &["team"]),
        (
            "a value of a foreign label",
            labels(json!({"kubernetes.io/hostname": "worker-2"})),
            &["kubernetes.io/hostname"],
        ),
        (
            "a foreign label goes",
            labels(json!({"node-role.kubernetes.io/gpu-worker": null})),
            &["node-role.kubernetes.io/gpu-worker"],
        ),
        (
            "all labels go",
            patched("/object/metadata", &no_labels),
            &["kubernetes.io/hostname, node-role.kubernetes.io/gpu-worker"],
        ),
        (
            "names that only begin or end as rocworker's do",
            labels(
                json!({"amd.com/gpux": "", "gpu.amd.com/x": "", "x.amd.com/gpu.y": "", "amd.com/cpx": ""}),
            ),
            &["amd.com/cpx, amd.com/gpux, gpu.amd.com/x, x.amd.com/gpu.y"],
        ),
        (
            "a taint",
            patched("/object/spec", &json!({"taints": [{"key": "x", "effect": "NoExecute"}]})),
            &["spec"],
        ),
        ("taints go", patched("/object/spec", &json!({"taints": null})), &["spec"]),
        ("a cordon", patched("/object/spec", &json!({"unschedulable": true})), &["spec"]),
        ("an annotation", patched("/object/metadata", &json!({"annotations": {"x": "y"}})), &["annotations"]),
        ("annotations go", patched("/object/metadata", &json!({"annotations": null})), &["annotations"]),
        ("a finalizer", patched("/object/metadata", &json!({"finalizers": ["x/y"]})), &["finalizers"]),
        (
            "an owner",
            patched("/object/metadata", &json!({"ownerReferences": [{"kind": "Pod", "name": "x"}]})),
            &["owners"],
        ),
        ("its status", patched("/request", &json!({"subResource": "status"})), &["subresource"]),
        (
            "another node",
            patched("/request", &json!({"userInfo": {"extra": {NODE: ["worker-2"]}}})),
            &["no other node"],
        ),
        (
            "a token of no pod",
            patched("/request", &json!({"userInfo": {"extra": {NODE: null}}})),
            &["no other node"],
        ),
        (
            "a token that says nothing",
            patched("/request", &json!({"userInfo": {"extra": null}})),
            &["no other node"],
        ),
        (
            "two faults at once",
            {
                let mut update = labels(json!({"team": "vision"}));
                merge(&mut update["object"]["spec"], &json!({"unschedulable": true}));
                update
            },
            &["team", "spec"],
        ),
    ]
}

fn judged(tools: &Path, policy: &Path, updates: &[Value]) -> Vec<Value> {
    let mut command = script(tools, "admit.py");
    command.arg(policy).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(json!(updates).to_string().as_bytes()).unwrap();
    let printed = Said::from(child.wait_with_output().unwrap()).well();
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn real_cel_admits_labels_of_gpus_on_the_plugins_own_node_and_refuses_every_other_change() {
    let Some([tools]) = real::require_made([TOOLS], &[]) else { return };
    let cases = cases();
    let updates: Vec<Value> = cases.iter().map(|(_, update, _)| update.clone()).collect();
    let verdicts = judged(&tools, &deployed("plugin/policy.yaml"), &updates);
    assert_eq!(verdicts.len(), cases.len());
    for ((name, _, expected), verdict) in cases.iter().zip(&verdicts) {
        let refusals = verdict.as_array().unwrap_or_else(|| panic!("{name}: {verdict}"));
        assert_eq!(refusals.len(), expected.len(), "{name}: {verdict}");
        for (refusal, words) in refusals.iter().zip(*expected) {
            let refusal = refusal.as_str().unwrap();
            assert!(refusal.starts_with("rocworker-device-plugin changes no "), "{name}: {refusal}");
            // CEL's maps have no order.
            assert!(words.split(", ").all(|word| refusal.contains(word)), "{name}: {refusal}");
            assert_eq!(refusal.split(", ").count(), words.split(", ").count(), "{name}: {refusal}");
        }
    }
}

#[test]
fn real_cel_leaves_the_updates_of_others_alone() {
    let Some([tools]) = real::require_made([TOOLS], &[]) else { return };
    let others = [
        "system:node:worker-1",
        "system:serviceaccount:node-feature-discovery:nfd-master",
        "system:serviceaccount:rocworker:default",
        "system:serviceaccount:other:rocworker-device-plugin",
        "kubernetes-admin",
    ];
    let by = |name: &&str| {
        let mut update = patched("/request", &json!({"userInfo": {"username": name}}));
        update["object"]["metadata"]["labels"] = json!({"team": "vision"});
        update
    };
    let verdicts =
        judged(&tools, &deployed("plugin/policy.yaml"), &others.iter().map(by).collect::<Vec<_>>());
    assert_eq!(verdicts, vec![json!("not matched"); others.len()]);
}

/// Without one of them, a case would pass that must not, or one more update be judged: so each has its case.
#[test]
fn real_cel_needs_each_validation_and_condition() {
    let Some([tools]) = real::require_made([TOOLS], &[]) else { return };
    let policy = yaml_serde::Deserializer::from_str(&text(&deployed("plugin/policy.yaml")))
        .map(|one| Value::deserialize(one).unwrap())
        .next()
        .unwrap();
    let mut updates: Vec<Value> = cases().into_iter().map(|(_, update, _)| update).collect();
    updates.push(patched("/request", &json!({"userInfo": {"username": "kubernetes-admin"}})));
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("policy.yaml");
    let judge = |policy: &Value| {
        std::fs::write(&place, policy.to_string()).unwrap();
        judged(&tools, &place, &updates)
    };
    let whole = judge(&policy);
    for list in ["validations", "matchConditions"] {
        let count = policy["spec"][list].as_array().unwrap().len();
        for left_out in 0..count {
            let mut weaker = policy.clone();
            let gone = weaker["spec"][list].as_array_mut().unwrap().remove(left_out);
            assert_ne!(judge(&weaker), whole, "no case needs {gone}");
        }
    }
}
