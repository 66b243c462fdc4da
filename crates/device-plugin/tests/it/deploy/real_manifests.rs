//! The files as `kubectl kustomize` joins them, and as Kubernetes' schemas allow.

use std::fs;
use std::path::{Path, PathBuf};

use support::real;
use support::said::Said;

use super::{TOOLS, deployed, kustomize, script, text};

/// The objects that `kubectl apply -k deploy/kubernetes` makes.
const ALL: [&str; 12] = [
    "Namespace/rocworker",
    "ServiceAccount/rocworker-device-plugin",
    "ClusterRole/rocworker-device-plugin",
    "ClusterRoleBinding/rocworker-device-plugin",
    "Service/rocworker-exporter",
    "DaemonSet/rocworker-device-plugin",
    "DaemonSet/rocworker-exporter",
    "ValidatingAdmissionPolicy/rocworker-device-plugin",
    "ValidatingAdmissionPolicyBinding/rocworker-device-plugin",
    "PrometheusRule/rocworker-amd-alerts",
    "ServiceMonitor/rocworker-exporter",
    "NodeFeatureRule/rocworker-amd-gpu",
];

/// Each file with objects, and none of kustomize's own.
fn files() -> Vec<PathBuf> {
    let folders = ["plugin", "nfd", "exporter", "prometheus", "examples"];
    let listed = |folder: &str| fs::read_dir(deployed(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = folders.into_iter().flat_map(listed).collect();
    files.retain(|path| path.file_name().is_some_and(|name| name != "kustomization.yaml"));
    files.sort();
    files
}

/// kind/name of each object in the order of kinds that an installation needs, which kustomize keeps.
fn names(yaml: &str) -> Vec<String> {
    let documents = yaml.split("\n---\n").map(|text| {
        let top = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).unwrap().to_owned();
        let name = text
            .split("\nmetadata:\n")
            .nth(1)
            .unwrap()
            .lines()
            .find_map(|line| line.strip_prefix("  name: "));
        format!("{}/{}", top("kind: "), name.unwrap())
    });
    documents.collect()
}

fn validate(tools: &Path, files: &[PathBuf]) -> Said {
    Said::from(script(tools, "validate.py").args(files).output().unwrap())
}

#[test]
fn real_kubernetes_schemas_allow_each_manifest_strictly() {
    let Some([tools]) = real::require_made([TOOLS], &[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let joined = folder.path().join("joined.yaml");
    fs::write(&joined, kustomize(&tools, &deployed("")).well()).unwrap();
    let mut all = files();
    all.push(joined);
    let counts: Vec<usize> =
        validate(&tools, &all).well().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(counts.len(), all.len());
    assert_eq!(counts.last(), Some(&ALL.len()));
    assert!(!counts.contains(&0), "{counts:?}");
}

#[test]
fn real_kubernetes_schemas_find_a_fault_in_each_kind() {
    let Some([tools]) = real::require_made([TOOLS], &[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("broken.yaml");
    for (file, right, wrong, named) in [
        ("plugin/namespace.yaml", "  name:", "  nam:", "nam"),
        ("plugin/daemonset.yaml", "volumeMounts:", "volumeMount:", "volumeMount"),
        (
            "plugin/daemonset.yaml",
            "readOnlyRootFilesystem: true",
            "readOnlyRootFilesystem: 1",
            "readOnlyRootFilesystem",
        ),
        (
            "plugin/daemonset.yaml",
            "    readOnlyRootFilesystem",
            "    runAsUser: 1\n            readOnlyRootFilesystem",
            "twice",
        ),
        ("plugin/rbac.yaml", "verbs:", "verb:", "verb"),
        ("plugin/policy.yaml", "matchConditions:", "matchCondition:", "matchCondition"),
        ("plugin/policy.yaml", "policyName: rocworker-device-plugin", "policyName: 1", "policyName"),
        ("nfd/nodefeaturerule.yaml", "op: In", "op: Inn", "Inn"),
        ("nfd/nodefeaturerule.yaml", "matchFeatures:", "matchFeature:", "matchFeature"),
        ("nfd/nodefeaturerule.yaml", "\"1002\"", "1002", "1002"),
        ("exporter/service.yaml", "targetPort:", "target:", "target"),
        ("prometheus/servicemonitor.yaml", "targetLabel:", "targetLabels:", "targetLabels"),
        ("prometheus/servicemonitor.yaml", "labeldrop", "dropp", "dropp"),
        ("prometheus/prometheusrule.yaml", "expr:", "exp:", "exp"),
        ("prometheus/prometheusrule.yaml", "for: 0m", "for: soon", "soon"),
        ("examples/pytorch.yaml", "limits:", "limit:", "limit"),
        ("examples/vllm-partition.yaml", "medium:", "media:", "media"),
        ("examples/pytorch.yaml", "kind: Pod", "kind: Pods", "Pods"),
    ] {
        let text = text(&deployed(file));
        assert!(text.contains(right), "{file}: {right}");
        fs::write(&place, text.replacen(right, wrong, 1)).unwrap();
        let refused = validate(&tools, std::slice::from_ref(&place)).badly();
        assert!(refused.contains(named) && !refused.contains("Traceback"), "{file}: {wrong}: {refused}");
    }
}

#[test]
fn real_kubectl_joins_the_folders_and_each_alone() {
    let Some([tools]) = real::require_made([TOOLS], &[]) else { return };
    let mut joined = names(&kustomize(&tools, &deployed("")).well());
    joined.sort();
    let mut expected = ALL.map(str::to_owned);
    expected.sort();
    assert_eq!(joined, expected);
    let mut alone: Vec<String> = ["plugin", "nfd", "exporter", "prometheus"]
        .iter()
        .flat_map(|folder| names(&kustomize(&tools, &deployed(folder)).well()))
        .collect();
    alone.sort();
    assert_eq!(alone, joined);
}

/// A folder of the operator's own beside a copy of deploy/kubernetes, as docs/kubernetes.md has it.
fn overlaid(tools: &Path, overlay: &str) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("deploy/kubernetes");
    for file in files().into_iter().chain(
        ["", "plugin", "nfd", "exporter", "prometheus"].map(|name| deployed(name).join("kustomization.yaml")),
    ) {
        let copy = place.join(file.strip_prefix(deployed("")).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(file, copy).unwrap();
    }
    let cluster = folder.path().join("cluster");
    fs::create_dir(&cluster).unwrap();
    fs::write(cluster.join("kustomization.yaml"), overlay).unwrap();
    kustomize(tools, &cluster)
}

#[test]
fn real_kubectl_pins_both_images_by_an_overlay() {
    let Some([tools]) = real::require_made([TOOLS], &[]) else { return };
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    let overlay = format!(
        "resources: [../deploy/kubernetes]
images:
  - name: localhost/rocworker
    newName: registry.example/rocworker
    digest: {digest}
"
    );
    let pinned = overlaid(&tools, &overlay).well();
    assert_eq!(pinned.matches(&format!("image: registry.example/rocworker@{digest}\n")).count(), 2);
    assert!(!pinned.contains("localhost/"), "{pinned}");
    let misspelt = overlaid(&tools, &overlay.replace("kubernetes]", "kubernete]")).badly();
    assert!(misspelt.contains("kubernete"), "{misspelt}");
}

#[test]
fn real_kubectl_applies_each_overlay_of_the_document() {
    let Some([tools]) = real::require_made([TOOLS], &[]) else { return };
    let document = text(&super::repository().join("docs/kubernetes.md"));
    let parts = document.split("```yaml\n").filter(|part| part.starts_with("resources:"));
    let overlays: Vec<&str> = parts.map(|part| part.split("```").next().unwrap()).collect();
    let [option, namespace, k0s] = overlays[..] else { panic!("{} overlays", overlays.len()) };

    let with_option = overlaid(&tools, option).well();
    let arguments = with_option.split("args:\n").find(|part| part.contains("--label-node")).unwrap();
    let arguments = arguments.split("command:").next().unwrap();
    assert!(arguments.contains("- --root=/host\n") && arguments.contains("- --replicas=4\n"), "{arguments}");

    let moved = overlaid(&tools, namespace).well();
    assert!(moved.contains("'system:serviceaccount:gpus:rocworker-device-plugin'"), "{moved}");
    assert!(
        !moved.contains("serviceaccount:rocworker:") && !moved.contains("namespace: rocworker\n"),
        "{moved}"
    );

    let elsewhere = overlaid(&tools, k0s).well();
    assert_eq!(elsewhere.matches("path: /var/lib/k0s/kubelet/pod-resources\n").count(), 1, "{elsewhere}");
    assert_eq!(elsewhere.matches("path: /var/lib/kubelet/device-plugins\n").count(), 1, "{elsewhere}");
    assert!(!elsewhere.contains("path: /var/lib/kubelet/pod-resources"), "{elsewhere}");
}
