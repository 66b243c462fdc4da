//! The kubelet's checkpoint of devices (Kubernetes' pkg/kubelet/cm/devicemanager/checkpoint). It lists the healthy devices
//! of each resource, and the devices of each container whose pod the kubelet has admitted.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use inventory::kubelet::DOMAIN;
use root::Root;
use serde::Deserialize;

const PATH: &str = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";

/// A node's 110 pods with 64 devices each make less than 2 MB.
const LIMIT: usize = 16 << 20;

/// Names of a CDI device of AMD's begin so.
const CDI_NAMES: &[u8] = b"amd.com/gpu=";

/// What of the checkpoint is about AMD's resources.
pub(super) struct Checkpoint {
    /// Ids of devices by resource.
    pub(super) registered: BTreeMap<String, BTreeSet<String>>,
    pub(super) given: Vec<Given>,
}

/// The devices of a container.
pub(super) struct Given {
    pub(super) pod: String,
    pub(super) container: String,
    pub(super) devices: BTreeSet<String>,
    by_cdi: bool,
}

/// Why there is no checkpoint to read.
pub(super) enum Lack {
    /// The kubelet writes it once a device plugin has registered.
    Absent,
    Unknown(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct File {
    data: Data,
}

// Go writes an empty list or map as null.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Data {
    pod_device_entries: Option<Vec<Entry>>,
    registered_devices: Option<BTreeMap<String, Option<BTreeSet<String>>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    #[serde(rename = "PodUID")]
    pod_uid: String,
    container_name: String,
    resource_name: String,
    #[serde(rename = "DeviceIDs")]
    device_ids: Option<Ids>,
    /// The plugin's answer (ContainerAllocateResponse), in base64.
    alloc_resp: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Ids {
    /// Before Kubernetes 1.20.
    List(BTreeSet<String>),
    ByNumaNode(BTreeMap<String, Option<BTreeSet<String>>>),
}

impl Checkpoint {
    pub(super) fn read(root: &Root) -> Result<Self, Lack> {
        let text = root.read_text(PATH, LIMIT).map_err(|error| match error.is_not_found() {
            true => Lack::Absent,
            false => Lack::Unknown(error.to_string()),
        })?;
        let file: File = serde_json::from_str(&text)
            .map_err(|error| Lack::Unknown(format!("{}: {error}", root.shown(PATH).display())))?;
        let is_amds = |resource: &str| resource.split_once('/').is_some_and(|(domain, _)| domain == DOMAIN);
        let registered = file.data.registered_devices.unwrap_or_default().into_iter();
        let registered = registered.filter(|(resource, _)| is_amds(resource));
        let given = file.data.pod_device_entries.unwrap_or_default().into_iter();
        Ok(Self {
            registered: registered
                .map(|(resource, devices)| (resource, devices.unwrap_or_default()))
                .collect(),
            given: given.filter(|entry| is_amds(&entry.resource_name)).map(Given::from).collect(),
        })
    }

    /// Whether a pod's container was given its GPUs by CDI names.
    pub(super) fn gives_cdi_names(&self) -> bool {
        self.given.iter().any(|given| given.by_cdi)
    }
}

impl From<Entry> for Given {
    fn from(entry: Entry) -> Self {
        let devices = match entry.device_ids {
            None => BTreeSet::new(),
            Some(Ids::List(devices)) => devices,
            Some(Ids::ByNumaNode(nodes)) => nodes.into_values().flatten().flatten().collect(),
        };
        let answer = entry.alloc_resp.and_then(|answer| STANDARD.decode(answer).ok()).unwrap_or_default();
        let by_cdi = answer.windows(CDI_NAMES.len()).any(|part| part == CDI_NAMES);
        Self { pod: entry.pod_uid, container: entry.container_name, devices, by_cdi }
    }
}
