//! `detect --output json`: the contract that others rely on. Documented in docs/json.md.

use std::collections::BTreeMap;
use std::path::PathBuf;

use amdgpu::{Gpu, Machine, Sriov, Unknown, Vendor};
use serde::Serialize;

use crate::facts::Facts;
use crate::remarks::remarks;
use amdgpu::names;

/// The whole answer. Absent is null, never 0.
#[derive(Debug, Serialize)]
pub struct Detection {
    pub schema_version: u32,
    pub gpus: Vec<Entry>,
    pub kfd: Option<KfdNode>,
    pub amdgpu: Driver,
    pub virtualization: Option<String>,
    /// What is wrong with the machine and belongs to no one GPU.
    pub problems: Vec<String>,
    /// Whether what cannot be read leaves open which GPUs there are.
    #[serde(skip)]
    pub may_lack: bool,
    /// What a person should know before containers use the GPUs, and is no fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One GPU, as a container can be given it.
#[derive(Debug, Serialize)]
pub struct Entry {
    pub index: Option<u32>,
    pub vendor: &'static str,
    /// Four hexadecimal digits.
    pub vendor_id: Option<String>,
    pub device_id: Option<String>,
    pub pci: Option<String>,
    pub name: Option<String>,
    pub driver: Option<String>,
    pub gfx: Option<String>,
    pub uuid: Option<String>,
    pub card: Option<PathBuf>,
    pub render: Option<PathBuf>,
    pub kfd_node: Option<u32>,
    pub numa_node: Option<u32>,
    pub vram_bytes: Option<u64>,
    pub partition: Option<PartitionEntry>,
    pub sriov: Option<SriovEntry>,
    pub usable: bool,
    /// Whether it is a processor's own graphics, an APU.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub integrated: bool,
    pub problems: Vec<String>,
    /// Why a field above is null, where there is a reason worth telling.
    pub unknown: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
pub struct PartitionEntry {
    pub compute: Option<String>,
    pub memory: Option<String>,
    pub id: u32,
}

/// What a card is in SR-IOV.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum SriovEntry {
    Pf { vfs: u32 },
    Vf { of: Option<String> },
}

#[derive(Debug, Serialize)]
pub struct KfdNode {
    pub path: PathBuf,
    pub major: u64,
    pub minor: u64,
}

#[derive(Debug, Serialize)]
pub struct Driver {
    /// Null where sysfs does not tell.
    pub loaded: Option<bool>,
    pub version: Option<String>,
    pub srcversion: Option<String>,
}

impl Detection {
    #[must_use]
    pub fn new(facts: &Facts) -> Self {
        let Machine { gpus, kfd, amdgpu, problems, .. } = &facts.machine;
        let number = kfd.node.number();
        Self {
            schema_version: 1,
            gpus: gpus.iter().map(Entry::new).collect(),
            kfd: number.map(|(major, minor)| KfdNode { path: kfd.node.path.clone(), major, minor }),
            amdgpu: Driver {
                loaded: amdgpu.loaded.clone().ok(),
                version: amdgpu.version.clone().ok(),
                srcversion: amdgpu.srcversion.clone().ok(),
            },
            virtualization: facts.virtualization.as_ref().map(|around| around.name().to_owned()),
            problems: problems.clone(),
            may_lack: !facts.machine.unanswered.is_empty(),
            notes: remarks(facts).into_iter().map(|remark| remark.text).collect(),
        }
    }
}

impl Entry {
    fn new(gpu: &Gpu) -> Self {
        let mut unknown = BTreeMap::new();
        let mut lacks = |field, reason: &Unknown| {
            // Of another vendor's card nothing is read, so that nothing is missing.
            if gpu.vendor == Vendor::Amd {
                unknown.insert(field, reason.to_string());
            }
        };
        let gfx = gpu.gfx.as_ref().inspect_err(|why| lacks("gfx", why)).ok();
        let uuid = gpu.uuid.as_ref().inspect_err(|why| lacks("uuid", why)).ok();
        let numa_node = gpu.numa_node.as_ref().inspect_err(|why| lacks("numa_node", why)).ok();
        let vram_bytes = gpu.vram_bytes.as_ref().inspect_err(|why| lacks("vram_bytes", why)).ok();
        let partition = gpu.partition.as_ref().map(|partition| PartitionEntry {
            compute: partition.compute.clone().inspect_err(|why| lacks("partition.compute", why)).ok(),
            memory: partition.memory.clone().inspect_err(|why| lacks("partition.memory", why)).ok(),
            id: partition.id,
        });
        Self {
            index: gpu.index,
            vendor: gpu.vendor.name(),
            vendor_id: gpu.vendor_id.map(|id| format!("{id:04x}")),
            device_id: gpu.device_id.map(|id| format!("{id:04x}")),
            pci: gpu.pci.map(|address| address.to_string()),
            name: names::of(gpu),
            driver: gpu.driver.clone(),
            gfx: gfx.map(|gfx| gfx.to_string()),
            uuid: uuid.map(|uuid| uuid.to_string()),
            card: gpu.card.as_ref().map(|node| node.path.clone()),
            render: gpu.render.as_ref().map(|node| node.path.clone()),
            kfd_node: gpu.kfd_node,
            numa_node: numa_node.copied(),
            vram_bytes: vram_bytes.copied(),
            partition,
            sriov: gpu.sriov.map(|sriov| match sriov {
                Sriov::Physical { vfs } => SriovEntry::Pf { vfs },
                Sriov::Virtual { of } => SriovEntry::Vf { of: of.map(|address| address.to_string()) },
            }),
            usable: gpu.usable(),
            integrated: gpu.is_integrated,
            problems: gpu.problems.iter().map(ToString::to_string).collect(),
            unknown,
        }
    }
}
