//! The files as TensorFusion's and Kubernetes' schemas allow, where an unknown field is a fault.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::real;
use support::said::Said;

use super::{TOOLS, beside, deployed, repository, script, text};

fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(deployed("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    assert_eq!(files.len(), 8, "{files:?}");
    files
}

fn validate(tools: &Path, files: &[PathBuf]) -> Said {
    let schemas = repository().join("crates/accelerator-amd/tests/schemas");
    Said::from(script(tools, "validate.py").arg(schemas).args(files).output().unwrap())
}

#[test]
fn real_schemas_allow_each_file_strictly() {
    let Some([tools]) = real::require_made([TOOLS], &[]) else { return };
    let files = files();
    assert_eq!(validate(&tools, &files).well(), "1\n".repeat(files.len()));
}

#[test]
fn real_schemas_find_a_fault_in_each_file() {
    let Some([tools]) = real::require_made([TOOLS], &[]) else { return };
    let cases = [
        ("provider-config.yaml", "vendor: AMD", "vendors: AMD", "vendors"),
        (
            "provider-config.yaml",
            "privilegedHypervisor: true",
            "privilegedHypervisor: 1",
            "privilegedHypervisor",
        ),
        ("provider-config.yaml", "sharedDevices:", "sharedDevice:", "sharedDevice"),
        ("provider-config.yaml", "- name: ACCEL", "- nam: ACCEL", "nam"),
        ("provider-config.yaml", "fp16TFlops: \"2516.6\"", "fp16TFlops: 2516.6", "fp16TFlops"),
        ("provider-config.yaml", "fp16TFlops: \"2516.6\"", "fp16TFlops: \"2,516.6\"", "fp16TFlops"),
        ("provider-config.yaml", "usedBySystemName:", "usedBySystem:", "usedBySystem"),
        ("gpupool.yaml", "nodeManagerConfig:", "nodeManager:", "nodeManager"),
        ("gpupool.yaml", "defaultIsolationMode: shared", "defaultIsolationMode: none", "none"),
        ("gpupool.yaml", "vramExpandToHostMem: 1", "vramExpandToHostMem: 101", "101"),
        ("gpupool.yaml", "operator: In", "operators: In", "operators"),
        (
            "gpupool.yaml",
            "enableVector: true",
            "enableVector: true\n      providerImage: {AMD: x}",
            "providerImage",
        ),
        ("gpupool.yaml", "  runAsUser: 0", "  runAsUsers: 0", "runAsUsers"),
        ("gpupool.yaml", "podTemplate:\n        template:", "podTemplate:\n        templates:", "templates"),
        ("tensorfusioncluster.yaml", "isDefault:", "default:", "default"),
        ("tensorfusioncluster.yaml", "provisioningMode: AutoSelect", "provisioningMode: Auto", "Auto"),
        ("tensorfusioncluster.yaml", "  command:", "  commands:", "commands"),
        ("tensorfusioncluster.yaml", "metadata:\n  name:", "metadata:\n  namespaces:", "namespaces"),
        (
            "values-amd.yaml",
            "initialGpuNodeLabelSelector:",
            "initialGPUNodeLabelSelector:",
            "initialGPUNodeLabelSelector",
        ),
        ("values-amd.yaml", "    enabled: false", "    enable: false", "enable"),
        ("values-amd.yaml", "weight: 5", "weigth: 5", "weigth"),
        ("values-amd.yaml", "scoringStrategy:", "scoring:", "scoring"),
        ("values-amd.yaml", "cluster:", "controller: {images: {}}\ncluster:", "images"),
        ("workload.yaml", "restartPolicy:", "restart:", "restart"),
        ("workload.yaml", "annotations:", "annotation:", "annotation"),
        ("remote-workload.yaml", "nodeSelector:", "nodeSelectors:", "nodeSelectors"),
        ("gpupool.yaml", "secretName: hip-worker-key", "secret: hip-worker-key", "secret"),
        ("gpupool.yaml", "patchToContainer:", "patchToContainers:", "patchToContainers"),
        ("provider-config.yaml", "remoteWorker:", "remoteWorkers:", "remoteWorkers"),
        ("gpu-info.yaml", "vendor: AMD", "vendor: NVIDIA", "vendor"),
        ("gpu-info.yaml", "fullModelName:", "fullmodelName:", "fullmodelName"),
        ("gpu-info.yaml", "  vendor: AMD", "  vendor: AMD\n  vendor: AMD", "twice"),
        ("metadata.yaml", "hardwareVendor:", "vendor:", "vendor"),
        ("metadata.yaml", "\"2026-11-30\"", "30.11.2026", "30.11.2026"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let place = |number: usize, file: &str| folder.path().join(number.to_string()).join(file);
    let mut files = Vec::new();
    for (number, (file, right, wrong, _)) in cases.iter().enumerate() {
        let text = text(&deployed(file));
        assert!(text.contains(right), "{file}: {right}");
        let place = place(number, file);
        fs::create_dir(place.parent().unwrap()).unwrap();
        fs::write(&place, text.replacen(right, wrong, 1)).unwrap();
        files.push(place);
    }
    let refused = validate(&tools, &files).badly();
    assert!(!refused.contains("Traceback"), "{refused}");
    let faults: Vec<&str> = refused.split(folder.path().to_str().unwrap()).collect();
    for (number, (file, _, wrong, named)) in cases.iter().enumerate() {
        let begins = format!("/{number}/{file}: ");
        let is_named = |fault: &&str| fault.strip_prefix(&begins).is_some_and(|fault| fault.contains(named));
        assert!(faults.iter().any(is_named), "{file}: {wrong}: {refused}");
    }
}

/// The plan of January 2026 that deploy/tensorfusion follows has fields that TensorFusion does not know.
#[test]
fn real_schemas_refuse_the_plans_own_pool_and_values() {
    let Some([tools]) = real::require_made([TOOLS], &[]) else { return };
    let refused = validate(&tools, &[beside("source/gpupool.yaml")]).badly();
    let faults: Vec<&str> = refused.lines().map(|line| line.split_once(".yaml: ").unwrap().1).collect();
    let unknown = |place: &str, field: &str| {
        format!("spec.{place}: Additional properties are not allowed ('{field}' was unexpected)")
    };
    let mut expected = [
        unknown("capacityConfig.minResources", "gpu"),
        unknown("capacityConfig.maxResources", "gpu"),
        unknown("componentConfig.hypervisor", "providerImage"),
        unknown("componentConfig.worker", "providerImage"),
    ];
    expected.sort();
    let mut faults = faults;
    faults.sort_unstable();
    assert_eq!(faults, expected);

    let refused = validate(&tools, &[beside("source/values-amd.yaml")]).badly();
    for named in
        ["'defaultProviderImages', 'exampleGPUPool' were unexpected", "'plugins' is a required property"]
    {
        assert!(refused.contains(named), "{refused}");
    }
}

/// The commands of docs/tensorfusion.md that extend the chart's list.
#[test]
fn real_kubectl_makes_the_config_map_with_the_entries() {
    let Some([tools]) = real::require_made([TOOLS], &[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("all.yaml");
    let of_chart =
        "- model: RX6400\n  fullModelName: \"AMD Radeon RX 6400\"\n  vendor: AMD\n  fp16TFlops: 7.14\n";
    fs::write(&list, format!("{of_chart}{}", text(&deployed("gpu-info.yaml")))).unwrap();
    let made = Command::new(tools.join("bin/kubectl"))
        .args([
            "create",
            "configmap",
            "tensor-fusion-sys-public-gpu-info",
            "--dry-run=client",
            "--output=yaml",
        ])
        .arg(format!("--from-file=gpu-info.yaml={}", list.display()))
        .output()
        .unwrap();
    let place = folder.path().join("made.yaml");
    let made = Said::from(made).well();
    fs::write(&place, &made).unwrap();
    assert_eq!(validate(&tools, &[place]).well(), "1\n");
    let object: serde_json::Value = yaml_serde::from_str(&made).unwrap();
    let entries: serde_json::Value =
        yaml_serde::from_str(object["data"]["gpu-info.yaml"].as_str().unwrap()).unwrap();
    assert_eq!(entries[0]["model"], "RX6400");
    assert!(entries.as_array().unwrap().iter().any(|one| one["model"] == "Instinct MI325X"), "{entries}");
}
