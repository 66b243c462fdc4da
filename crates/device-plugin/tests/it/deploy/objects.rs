//! What the objects say of each other, and of the programs.

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{deployed, repository, text};

fn objects(file: &str) -> Vec<Value> {
    let text = text(&deployed(file));
    yaml_serde::Deserializer::from_str(&text).map(|one| Value::deserialize(one).unwrap()).collect()
}

fn object(file: &str, kind: &str) -> Value {
    objects(file).into_iter().find(|one| one["kind"] == kind).unwrap()
}

pub(super) fn daemon_set(folder: &str) -> Value {
    object(&format!("{folder}/daemonset.yaml"), "DaemonSet")
}

pub(super) fn container(daemon_set: &Value) -> &Value {
    let containers = daemon_set["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1);
    &containers[0]
}

#[test]
fn the_rule_has_the_alerts_word_for_word() {
    let from = |name: &str, line: &str| {
        let text = text(&repository().join(name));
        let start = text.find(&format!("\n{line}\n")).unwrap();
        text[start + 1..].to_owned()
    };
    let alerts = from("deploy/prometheus/amd-alerts.yaml", "groups:");
    let indented =
        alerts.lines().map(|line| if line.is_empty() { "\n".into() } else { format!("  {line}\n") });
    let expected = format!("spec:\n{}", indented.collect::<String>());
    assert!(
        from("deploy/kubernetes/prometheus/prometheusrule.yaml", "spec:") == expected,
        "the rules differ; in deploy, this writes them anew:
r=kubernetes/prometheus/prometheusrule.yaml
{{ sed '/^spec:/q' $r; sed -n '/^groups:/,$p' prometheus/amd-alerts.yaml | sed 's/^\\(.\\)/  \\1/'; }} > rule && mv rule $r"
    );
}

#[test]
fn both_programs_are_of_one_image_of_this_version() {
    for folder in ["plugin", "exporter"] {
        let daemon_set = daemon_set(folder);
        let container = container(&daemon_set);
        // Not a bare name: an engine would look for that on Docker Hub, where anyone may have taken it.
        assert_eq!(container["image"], format!("localhost/rocworker:{}", env!("CARGO_PKG_VERSION")));
        let program = daemon_set["metadata"]["name"].as_str().unwrap();
        assert_eq!(container["command"], json!([format!("/{program}")]));
        let containerfile = text(&deployed("Containerfile"));
        let copied = containerfile.lines().find(|line| line.starts_with("COPY ")).unwrap();
        assert!(copied.split(' ').any(|word| word == program), "{copied}");
    }
}

#[test]
fn selectors_names_and_ports_lead_to_what_there_is() {
    let [plugin, exporter] = ["plugin", "exporter"].map(daemon_set);
    for daemon_set in [&plugin, &exporter] {
        let labels = &daemon_set["spec"]["template"]["metadata"]["labels"];
        assert_eq!(&daemon_set["spec"]["selector"]["matchLabels"], labels);
    }
    let service = object("exporter/service.yaml", "Service");
    let monitor = object("prometheus/servicemonitor.yaml", "ServiceMonitor");
    assert_eq!(service["spec"]["selector"], exporter["spec"]["template"]["metadata"]["labels"]);
    assert_eq!(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"]);
    let named = &container(&exporter)["ports"][0];
    assert_eq!(service["spec"]["ports"][0]["targetPort"], named["name"]);
    assert_eq!(monitor["spec"]["endpoints"][0]["port"], service["spec"]["ports"][0]["name"]);
    let listens = format!("--listen=:{}", named["containerPort"]);
    assert!(container(&exporter)["args"].as_array().unwrap().contains(&json!(listens)), "{listens}");

    let account = object("plugin/rbac.yaml", "ServiceAccount");
    let name = &account["metadata"]["name"];
    assert_eq!(&plugin["spec"]["template"]["spec"]["serviceAccountName"], name);
    let binding = object("plugin/rbac.yaml", "ClusterRoleBinding");
    let role = object("plugin/rbac.yaml", "ClusterRole");
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
    let namespace = &account["metadata"]["namespace"];
    assert_eq!(
        binding["subjects"],
        json!([{"kind": "ServiceAccount", "name": name, "namespace": namespace}])
    );
    assert_eq!(&object("plugin/namespace.yaml", "Namespace")["metadata"]["name"], namespace);
    let policy = object("plugin/policy.yaml", "ValidatingAdmissionPolicy");
    let admitted = object("plugin/policy.yaml", "ValidatingAdmissionPolicyBinding");
    assert_eq!(admitted["spec"]["policyName"], policy["metadata"]["name"]);
    assert_eq!(admitted["spec"]["validationActions"], json!(["Deny"]));
    let rule = object("nfd/nodefeaturerule.yaml", "NodeFeatureRule");
    let labels = &rule["spec"]["rules"][0]["labels"];
    for daemon_set in [&plugin, &exporter] {
        assert_eq!(&daemon_set["spec"]["template"]["spec"]["nodeSelector"], labels);
    }
}

#[test]
fn the_plugin_may_patch_nodes_and_nothing_more() {
    let role = object("plugin/rbac.yaml", "ClusterRole");
    assert_eq!(role["rules"], json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]}]));
    assert_eq!(objects("plugin/rbac.yaml").len(), 3, "the account, this role and its binding");
    let exporter = &daemon_set("exporter")["spec"]["template"]["spec"];
    assert_eq!(exporter["automountServiceAccountToken"], false);
}

#[test]
fn one_folder_of_the_host_can_be_written() {
    for (folder, writable) in [("plugin", &["/host/var/lib/kubelet/device-plugins"][..]), ("exporter", &[])] {
        let daemon_set = daemon_set(folder);
        let container = container(&daemon_set);
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        let root = container["args"]
            .as_array()
            .unwrap()
            .iter()
            .find_map(|argument| argument.as_str()?.strip_prefix("--root="));
        let volumes = daemon_set["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
        let mounts = container["volumeMounts"].as_array().unwrap();
        assert_eq!(mounts.len(), volumes.len());
        let mut found = Vec::new();
        for mount in mounts {
            let inside = mount["mountPath"].as_str().unwrap();
            let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap();
            // Each is where the host has it, beneath --root.
            assert_eq!(volume["hostPath"]["path"], inside.strip_prefix(root.unwrap()).unwrap());
            if mount["readOnly"] != true {
                found.push(inside);
            }
        }
        assert_eq!(found, writable, "{folder}");
    }
}

#[test]
fn the_gpu_pod_asks_for_a_gpu_on_a_node_that_has_one() {
    let pod = object("examples/pytorch.yaml", "Pod");
    assert_eq!(
        pod["spec"],
        json!({
            "containers": [{
                "name": "rocm-container",
                "image": "rocm/pytorch:latest",
                "resources": {"limits": {"amd.com/gpu": 1}},
            }],
            "nodeSelector": {"gpu": "true"},
        })
    );
}

#[test]
fn the_pod_on_a_partition_selects_a_label_that_the_plugin_sets() {
    let pod = object("examples/vllm-partition.yaml", "Pod");
    let selected = pod["spec"]["nodeSelector"].as_object().unwrap().keys().next().unwrap();
    let property = selected.strip_prefix("amd.com/gpu.").unwrap();
    let plugin = daemon_set("plugin");
    let arguments = container(&plugin)["args"].as_array().unwrap();
    let labels = arguments.iter().find_map(|argument| argument.as_str()?.strip_prefix("--labels=")).unwrap();
    let mut labels = labels.split(',');
    assert!(labels.all(|name| serde_json::from_value::<inventory::labels::Property>(json!(name)).is_ok()));
    assert!(arguments.iter().any(|argument| argument.as_str().unwrap().contains(property)), "{property}");
}
