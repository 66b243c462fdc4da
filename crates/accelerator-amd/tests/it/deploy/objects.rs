//! What the objects say of each other, and of the provider.

use std::collections::BTreeMap;

use inventory::partitioning::Chip;
use serde_json::{Value, json};

use super::{deployed, repository, text, yaml};

/// `model`, and the two values that the list has for it.
fn rates(list: &Value) -> BTreeMap<String, (String, f64)> {
    let rate = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let row = |one: &Value| (word(&one["model"]), (word(&one["fullModelName"]), rate(&one["fp16TFlops"])));
    let rows: Vec<_> = list.as_array().unwrap().iter().map(row).collect();
    let count = rows.len();
    let rates = BTreeMap::from_iter(rows);
    assert_eq!(rates.len(), count, "a model stands twice");
    rates
}

fn hardware() -> BTreeMap<String, (String, f64)> {
    rates(&yaml("provider-config.yaml")["spec"]["hardwareMetadata"])
}

#[test]
fn the_configured_models_are_the_tables() {
    let table = inventory::models().iter().filter_map(|model| Some((model, model.fp16_tflops?)));
    let names = table.flat_map(|(model, rate)| {
        let whole = (model.name.to_owned(), rate);
        // As the provider names a partition; a rate to three decimals.
        let parts = Chip::of_model(model).into_iter().flat_map(Chip::divided).map(move |(mode, devices)| {
            let rate = (rate / f64::from(devices) * 1000.0).round() / 1000.0;
            (format!("{} {}", model.name, mode.name()), rate)
        });
        std::iter::once(whole).chain(parts)
    });
    let expected = names.map(|(name, rate)| (name.strip_prefix("AMD ").unwrap().to_owned(), (name, rate)));
    assert_eq!(hardware(), expected.collect());
}

#[test]
fn the_charts_list_gets_each_instinct_as_it_is_configured() {
    let mut instincts = hardware();
    instincts.retain(|model, _| model.starts_with("Instinct "));
    assert!(instincts.contains_key("Instinct MI325X"), "{instincts:?}");
    assert_eq!(rates(&yaml("gpu-info.yaml")), instincts);
}

#[test]
fn the_cluster_makes_the_pool_that_the_other_file_makes() {
    let (pool, cluster) = (yaml("gpupool.yaml"), yaml("tensorfusioncluster.yaml"));
    let [of_cluster] = &cluster["spec"]["gpuPools"].as_array().unwrap()[..] else { panic!("{cluster}") };
    assert_eq!(of_cluster["specTemplate"], pool["spec"]);
    // As TensorFusion names the pools of a cluster.
    let name =
        [&cluster["metadata"]["name"], &of_cluster["name"]].map(|part| part.as_str().unwrap()).join("-");
    assert_eq!(pool["metadata"]["name"], name);
    assert_eq!(yaml("workload.yaml")["metadata"]["annotations"]["tensor-fusion.ai/gpupool"], name);
    assert!(text(&deployed("test-amd-cluster.sh")).contains(&format!("\npool={name}\n")));
}

#[test]
fn nodes_are_found_by_one_label() {
    let selector = yaml("values-amd.yaml")["initialGpuNodeLabelSelector"].clone();
    assert_eq!(selector, "amdgpu.com/gpu.present=true");
    let (key, value) = selector.as_str().unwrap().split_once('=').unwrap();
    let terms = &yaml("gpupool.yaml")["spec"]["nodeManagerConfig"]["nodeSelector"]["nodeSelectorTerms"];
    assert_eq!(terms, &json!([{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]));
}

/// The pod's two annotations without which TensorFusion takes it for NVIDIA's, or refuses it.
#[test]
fn the_pod_asks_for_a_part_of_a_shared_gpu_of_amds() {
    let pod = yaml("workload.yaml");
    let annotation = |name: &str| &pod["metadata"]["annotations"][format!("tensor-fusion.ai/{name}")];
    assert_eq!(annotation("vendor"), &yaml("provider-config.yaml")["spec"]["vendor"]);
    let pool = yaml("gpupool.yaml");
    assert_eq!(annotation("isolation"), &pool["spec"]["nodeManagerConfig"]["defaultIsolationMode"]);
    assert_eq!(annotation("inject-container"), &pod["spec"]["containers"][0]["name"]);
    let tflops: f64 = annotation("tflops-request").as_str().unwrap().parse().unwrap();
    let gib: f64 = annotation("vram-request").as_str().unwrap().strip_suffix("Gi").unwrap().parse().unwrap();
    for model in inventory::models() {
        let memory = model.memory_bytes as f64 / f64::from(1 << 30);
        let devices = Chip::of_model(model).into_iter().flat_map(Chip::divided).map(|(_, devices)| devices);
        let devices = f64::from(devices.max().unwrap_or(1));
        assert!(gib < memory / devices, "{}", model.name);
        assert!(model.fp16_tflops.is_none_or(|rate| tflops < rate / devices), "{}", model.name);
    }
    assert_eq!(annotation("vram-limit"), annotation("vram-request"));
    assert_eq!(annotation("tflops-limit"), annotation("tflops-request"));
}

#[test]
fn the_remote_pod_asks_for_what_the_local_one_asks() {
    let annotations = |name: &str| yaml(name)["metadata"]["annotations"].as_object().unwrap().clone();
    let (mut local, mut remote) = (annotations("workload.yaml"), annotations("remote-workload.yaml"));
    let is_local = "tensor-fusion.ai/is-local-gpu";
    assert_eq!(
        [local.remove(is_local), remote.remove(is_local)],
        [Some(json!("true")), Some(json!("false"))]
    );
    assert_eq!(local, remote);
}

#[test]
fn client_and_worker_find_their_halves_of_the_key() {
    let pool = yaml("gpupool.yaml");
    let [client, worker] = ["client", "worker"].map(|one| &pool["spec"]["componentConfig"][one]);
    let pod = &worker["podTemplate"]["template"]["spec"];
    for (spec, container, secret) in [
        (&client["patchToPod"]["spec"], &client["patchToContainer"], "hip-client-key"),
        (pod, &pod["containers"][0], "hip-worker-key"),
    ] {
        let volume = &spec["volumes"][0];
        // The programs refuse a key that other users may read.
        assert_eq!(
            (&volume["secret"]["secretName"], &volume["secret"]["defaultMode"]),
            (&json!(secret), &json!(0o400))
        );
        let mount = json!([{"name": volume["name"], "mountPath": "/etc/rocworker/hip", "readOnly": true}]);
        assert_eq!(container["volumeMounts"], mount);
    }
    let variable = json!([{"name": "ROCWORKER_HIP_KEY", "value": "/etc/rocworker/hip/client.key"}]);
    assert_eq!(client["patchToContainer"]["env"], variable);
    assert!(text(&deployed("tensor-fusion-worker.sh")).contains("\nkey=/etc/rocworker/hip/worker.key\n"));
    // A pod with a GPU of its own node needs no key.
    assert_eq!(client["patchToPod"]["spec"]["volumes"][0]["secret"]["optional"], true);
}

#[test]
fn the_hypervisor_loads_what_its_init_container_copies() {
    let provider = yaml("provider-config.yaml");
    let folder = provider["spec"]["hypervisor"]["ldLibraryPath"].as_str().unwrap();
    let pool = yaml("gpupool.yaml");
    let pod = &pool["spec"]["componentConfig"]["hypervisor"]["podTemplate"]["template"]["spec"];
    let names = ["tensor-fusion-hypervisor", "vector"];
    assert_eq!(
        pod["containers"].as_array().unwrap().iter().map(|one| &one["name"]).collect::<Vec<_>>(),
        names
    );
    let container = &pod["containers"][0];
    assert_eq!(
        container["env"],
        json!([{"name": "TF_ACCELERATOR_LIB_PATH", "value": format!("{folder}/libaccelerator_amd.so")}])
    );
    let remount = container["command"][2].as_str().unwrap();
    assert!(remount.contains(&format!("remount,exec,bind {folder} ")), "{remount}");
    let topology = json!([{"name": "ACCELERATOR_AMD_TOPOLOGY", "value": "go"}]);
    assert_eq!(provider["spec"]["hypervisor"]["extraEnv"], topology);
}

#[test]
fn image_and_metadata_are_of_this_version() {
    let images = &yaml("provider-config.yaml")["spec"]["images"];
    let version = env!("CARGO_PKG_VERSION");
    // Not a bare name: an engine would look for that on Docker Hub, where anyone may have taken it.
    let image = |name: &str| format!("localhost/tensor-fusion-{name}:{version}");
    let expected = json!({
        "middleware": image("amd-provider"),
        "remoteClient": image("hip-client"),
        "remoteWorker": image("hip-worker"),
    });
    assert_eq!(images, &expected);
    assert_eq!(yaml("metadata.yaml")["version"], version);
}

/// Helm replaces the chart's list of profiles, so each of the chart's plugins must stand here.
#[test]
fn the_scheduler_keeps_tensorfusions_plugins_and_weighs_amds_gpus() {
    let values = yaml("values-amd.yaml");
    let profile = &values["schedulerConfig"]["profiles"][0];
    let points = profile["plugins"].as_object().unwrap();
    let fits = |point: &Value| point["enabled"][0]["name"] == "GPUResourcesFit";
    assert!(points.len() == 7 && points.values().all(fits), "{points:?}");
    let configured = profile["pluginConfig"].as_array().unwrap();
    let fit = configured.iter().find(|one| one["name"] == "NodeResourcesFit").unwrap();
    let resources = &fit["args"]["scoringStrategy"]["resources"];
    assert_eq!(
        resources,
        &json!([
            {"name": "cpu", "weight": 1},
            {"name": "memory", "weight": 1},
            {"name": "amd.com/gpu", "weight": 5},
        ])
    );
}

#[test]
fn the_document_names_each_file() {
    let document = text(&repository().join("docs/tensorfusion.md"));
    for entry in std::fs::read_dir(deployed("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Containerfile begins the name of another file.
        let is_named = document.contains(&format!("\n| {name} |"));
        assert!(is_named, "the table of docs/tensorfusion.md lacks {name}");
    }
}
