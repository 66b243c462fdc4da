//! KFD's topology: /sys/class/kfd/kfd/topology (drivers/gpu/drm/amd/amdkfd/kfd_topology.c).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use inventory::{Gfx, Reading, Unknown, Unread, UnreadOf};
use root::Root;

use crate::attribute;

pub(crate) const CLASS: &str = "/sys/class/kfd/kfd";

/// A node of KFD's topology that is a GPU or one partition of one.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The node's number in the topology; HIP and ROCr number devices in this order.
    pub(crate) id: u32,
    pub(crate) gfx: Reading<Gfx>,
    pub(crate) device_id: Option<u16>,
    /// The minor of its render node; what ties KFD to DRM and so to a PCI card; 0 where there is none.
    pub(crate) render_minor: u32,
    /// Bus, device and function, and on partitioned GPUs the partition in among them: no address.
    pub(crate) location_id: Option<u32>,
    /// The PCI domain; absent before Linux 5.6.
    pub(crate) domain: Option<u32>,
    /// `None` when absent or 0, which says "not known".
    pub(crate) unique_id: Option<u64>,
    /// The processor's cores are in the same node: Kaveri, Carrizo and Raven, on kernels before 6.6.
    pub(crate) has_cores: bool,
    /// The XGMI hive; `None` where there is none.
    pub(crate) hive_id: Option<u64>,
    /// The XCDs of the node, which the kernel calls XCCs; `None` before Linux 6.5.
    pub(crate) xcds: Option<u32>,
    pub(crate) simds: Option<u32>,
    pub(crate) simds_per_unit: Option<u32>,
}

/// KFD's nodes of GPUs.
#[derive(Debug)]
pub(crate) struct Topology {
    /// Whether the kernel has a KFD; the reason when not.
    pub(crate) there: Reading<()>,
    /// The nodes in the order of their numbers.
    pub(crate) nodes: Vec<Node>,
    /// How many nodes' properties may not be read here: the device cgroup hides their GPU.
    pub(crate) hidden: usize,
    /// The other nodes of which it is not known whether they are GPUs, in the order of their numbers.
    pub(crate) unread: Vec<Unread>,
}

pub(crate) fn topology(root: &Root) -> Topology {
    let ids = node_numbers(root);
    let there = ids.as_ref().map(drop).map_err(Clone::clone);
    let mut topology = Topology { there, nodes: Vec::new(), hidden: 0, unread: Vec::new() };
    for id in ids.into_iter().flatten() {
        let properties = attribute::text(root, &node_folder(id).join("properties"));
        match properties.and_then(|properties| Node::parse(id, &properties)) {
            Ok(Some(node)) => topology.nodes.push(node),
            Ok(None) => {}
            Err(reason) if reason.is_hidden() => topology.hidden += 1,
            Err(reason) => topology.unread.push(Unread { of: UnreadOf::KfdNode(id), reason }),
        }
    }
    topology
}

/// The numbers of all nodes, hidden ones too.
fn node_numbers(root: &Root) -> Reading<BTreeSet<u32>> {
    let names = attribute::names(root, &Path::new(CLASS).join("topology/nodes"))?;
    Ok(names.iter().filter_map(|name| number_of(name.to_str()?)).collect())
}

/// The major that the kernel has registered for kfd's character device, `None` when there is none
/// (fs/proc/devices.c).
///
/// # Errors
/// Why /proc/devices does not say.
pub fn registered_major(root: &Root) -> Reading<Option<u64>> {
    let text = attribute::text(root, Path::new("/proc/devices"))?;
    let character = text.split("Block devices:").next().unwrap_or(&text);
    Ok(character.lines().find_map(|line| line.trim().strip_suffix(" kfd")?.trim().parse().ok()))
}

/// A node's number as the kernel writes it: `+1` and `01` are no nodes.
fn number_of(name: &str) -> Option<u32> {
    name.parse().ok().filter(|number: &u32| number.to_string() == name)
}

pub(crate) fn node_folder(id: u32) -> PathBuf {
    Path::new(CLASS).join(format!("topology/nodes/{id}"))
}

/// The memory of a node in bytes: its frame buffer heaps. KFD gives a partition its share here.
pub(crate) fn memory(root: &Root, id: u32) -> Reading<u64> {
    let folder = node_folder(id).join("mem_banks");
    let banks = attribute::names(root, &folder)?;
    let mut total: Option<u64> = None;
    for bank in banks {
        let text = attribute::text(root, &folder.join(bank).join("properties"))?;
        // HSA_MEM_HEAP_TYPE_FB_PUBLIC and _FB_PRIVATE (kfd_crat.h); the other heaps are not the GPU's memory.
        if matches!(property(&text, "heap_type"), Some("1" | "2")) {
            let size: u64 =
                property(&text, "size_in_bytes").and_then(|size| size.parse().ok()).ok_or_else(|| {
                    Unknown::because(format!("{} has a bank without a size", root.shown(&folder).display()))
                })?;
            total = Some(total.unwrap_or(0).saturating_add(size));
        }
    }
    total.ok_or_else(|| Unknown::because(format!("{} has no frame buffer", root.shown(&folder).display())))
}

impl Node {
    /// `None` for a node that is no GPU.
    fn parse(id: u32, properties: &str) -> Reading<Option<Self>> {
        let number = |key| property(properties, key).and_then(|value| value.parse::<u64>().ok());
        let small = |key| number(key).and_then(|value| u32::try_from(value).ok());
        let target = small("gfx_target_version").filter(|version| *version > 0);
        // Raven on old kernels is CPU and GPU in one node, so cores decide nothing; compute units do.
        if target.is_none() && number("simd_count").is_none_or(|count| count == 0) {
            return if property(properties, "cpu_cores_count").is_some() {
                Ok(None)
            } else {
                Err(Unknown::because("its properties are neither a CPU's nor a GPU's"))
            };
        }
        Ok(Some(Self {
            id,
            gfx: target.and_then(Gfx::from_target_version).ok_or_else(|| {
                Unknown::because(format!("KFD node {id} names no gfx_target_version that is one"))
            }),
            device_id: number("device_id").and_then(|id| u16::try_from(id).ok()),
            render_minor: small("drm_render_minor").unwrap_or(0),
            location_id: small("location_id"),
            domain: small("domain"),
            has_cores: number("cpu_cores_count").is_some_and(|count| count > 0),
            unique_id: number("unique_id").filter(|id| *id != 0),
            // A partitioned card without XGMI has its bus, device and function here (kgd2kfd_device_init in
            // kfd_device.c), which cards in other PCI domains may have too.
            hive_id: number("hive_id").filter(|id| *id > 0xffff),
            xcds: small("num_xcc").filter(|count| *count > 0),
            simds: small("simd_count").filter(|count| *count > 0),
            simds_per_unit: small("simd_per_cu").filter(|count| *count > 0),
        }))
    }
}

pub(crate) fn property<'a>(properties: &'a str, key: &str) -> Option<&'a str> {
    properties.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')).map(str::trim)
}
