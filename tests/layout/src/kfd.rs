//! `/dev/kfd` and its topology (drivers/gpu/drm/amd/amdkfd/kfd_topology.c).

use crate::drm::RENDER;
use crate::tree::relative;
use crate::{Address, Device, Entry, Error, Tree};

const FOLDER: &str = "/sys/devices/virtual/kfd/kfd";
/// A memory bank of the GPU's own that the CPU does not see (HSA_MEM_HEAP_TYPE_FB_PRIVATE).
const HEAP_FB_PRIVATE: u64 = 2;
/// AMD, in decimal as KFD writes it.
const VENDOR: u64 = 4098;

/// The driver that computing goes through.
#[derive(Debug, Clone)]
pub struct Kfd {
    pub(crate) major: u32,
    nodes: Vec<KfdNode>,
}

impl Kfd {
    /// A KFD whose character device has this major; it varies from boot to boot.
    pub fn new(major: u32) -> Self {
        Self { major, nodes: Vec::new() }
    }

    /// Adds the next node of the topology; the first is node 0.
    #[must_use]
    pub fn node(mut self, node: KfdNode) -> Self {
        self.nodes.push(node);
        self
    }

    pub(crate) fn lay_out(&self, tree: &mut Tree) -> Result<(), Error> {
        tree.put(&format!("{FOLDER}/dev"), format!("{}:0\n", self.major));
        tree.put(&format!("{FOLDER}/uevent"), format!("MAJOR={}\nMINOR=0\nDEVNAME=kfd\n", self.major));
        let subsystem = format!("{FOLDER}/subsystem");
        tree.put(&subsystem, Entry::Link(relative(&subsystem, "/sys/class/kfd")));
        tree.put(&format!("{FOLDER}/proc"), Entry::Directory);
        tree.put(&format!("{FOLDER}/topology/generation_id"), "2\n");
        tree.put(
            &format!("{FOLDER}/topology/system_properties"),
            "platform_oem 0\nplatform_id 0\nplatform_rev 0\n",
        );
        tree.put("/sys/class/kfd/kfd", Entry::Link(relative("/sys/class/kfd/kfd", FOLDER)));
        let by_number = format!("/sys/dev/char/{}:0", self.major);
        tree.put(&by_number, Entry::Link(relative(&by_number, FOLDER)));
        tree.put("/dev/kfd", Device::new(self.major, 0, RENDER));
        for (number, node) in self.nodes.iter().enumerate() {
            node.lay_out(&format!("{FOLDER}/topology/nodes/{number}"), tree)?;
        }
        Ok(())
    }
}

/// A node of the topology: a CPU socket, or a GPU or a partition of one.
#[derive(Debug, Clone)]
pub struct KfdNode {
    name: String,
    gpu_id: u32,
    properties: Vec<(String, u64)>,
    address: Option<String>,
    partition: u64,
    /// Heap type and size of each bank, in bytes.
    banks: Vec<(u64, u64)>,
    links: Vec<(u64, usize)>,
}

impl KfdNode {
    /// A CPU node.
    pub fn cpu(cores: u32) -> Self {
        Self::new("", 0).property("cpu_cores_count", u64::from(cores))
    }

    /// A GPU node. `gfx_target_version` is the number KFD shows: 90402 for gfx942.
    pub fn gpu(gpu_id: u32, device: u16, gfx_target_version: u64) -> Self {
        Self::new("ip discovery", gpu_id)
            .property("cpu_cores_count", 0)
            .property("simd_count", 4)
            // rocm-smi does not start without these three.
            .property("array_count", 1)
            .property("simd_arrays_per_engine", 1)
            .property("cu_per_simd_array", 1)
            .property("simd_per_cu", 4)
            .property("gfx_target_version", gfx_target_version)
            .property("vendor_id", VENDOR)
            .property("device_id", u64::from(device))
            .property("num_xcc", 1)
    }

    fn new(name: &str, gpu_id: u32) -> Self {
        // The order in which node_show() prints them, of those that anybody here reads.
        let properties = [
            "cpu_cores_count",
            "simd_count",
            "mem_banks_count",
            "caches_count",
            "io_links_count",
            "p2p_links_count",
            "array_count",
            "simd_arrays_per_engine",
            "cu_per_simd_array",
            "simd_per_cu",
            "gfx_target_version",
            "vendor_id",
            "device_id",
            "location_id",
            "domain",
            "drm_render_minor",
            "hive_id",
        ];
        Self {
            name: name.to_owned(),
            gpu_id,
            properties: properties.iter().map(|key| ((*key).to_owned(), 0)).collect(),
            address: None,
            partition: 0,
            banks: Vec::new(),
            links: Vec::new(),
        }
    }

    /// Places the GPU: `domain` and `location_id` follow from its PCI address.
    #[must_use]
    pub fn at(mut self, address: &str) -> Self {
        self.address = Some(address.to_owned());
        self
    }

    /// Makes it partition `number` of its card: the number is in the low bits of `location_id`,
    /// where a PCI function would be.
    #[must_use]
    pub fn partition(mut self, number: u8) -> Self {
        self.partition = u64::from(number);
        self
    }

    /// Sets `drm_render_minor`.
    #[must_use]
    pub fn render(self, minor: u32) -> Self {
        self.property("drm_render_minor", u64::from(minor))
    }

    /// Sets any property, in its place or, when it is new, at the end.
    #[must_use]
    pub fn property(mut self, key: &str, value: u64) -> Self {
        match self.properties.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.properties.push((key.to_owned(), value)),
        }
        self
    }

    /// Leaves a property out, as an older kernel does: `domain`, `unique_id`.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        self.properties.retain(|(known, _)| known != key);
        self
    }

    /// Adds a bank of the GPU's own memory, its size in bytes.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.banks.push((HEAP_FB_PRIVATE, bytes));
        self
    }

    /// Adds a link to another node; `kind` 11 is XGMI, 2 PCIe (HSA_IOLINKTYPE).
    #[must_use]
    pub fn link(mut self, kind: u64, to: usize) -> Self {
        self.links.push((kind, to));
        self
    }

    fn properties(&self) -> Result<String, Error> {
        let address: Option<Address> = self.address.as_deref().map(str::parse).transpose()?;
        let line = |(key, value): &(String, u64)| {
            let value = match (key.as_str(), address) {
                ("location_id", Some(address)) => address.location_id() | self.partition,
                ("domain", Some(address)) => u64::from(address.domain),
                ("mem_banks_count", _) => self.banks.len() as u64,
                ("io_links_count", _) => self.links.len() as u64,
                _ => *value,
            };
            format!("{key} {value}\n")
        };
        Ok(self.properties.iter().map(line).collect())
    }

    fn lay_out(&self, folder: &str, tree: &mut Tree) -> Result<(), Error> {
        tree.put(&format!("{folder}/gpu_id"), format!("{}\n", self.gpu_id));
        tree.put(&format!("{folder}/name"), format!("{}\n", self.name));
        tree.put(&format!("{folder}/properties"), self.properties()?);
        for kind in ["mem_banks", "io_links", "p2p_links", "caches"] {
            tree.put(&format!("{folder}/{kind}"), Entry::Directory);
        }
        for (number, (heap, bytes)) in self.banks.iter().enumerate() {
            tree.put(
                &format!("{folder}/mem_banks/{number}/properties"),
                format!("heap_type {heap}\nsize_in_bytes {bytes}\nflags 0\nwidth 8192\nmem_clk_max 1300\n"),
            );
        }
        let own = folder.rsplit('/').next().unwrap_or(folder);
        for (number, (kind, to)) in self.links.iter().enumerate() {
            tree.put(
                &format!("{folder}/io_links/{number}/properties"),
                format!(
                    "type {kind}\nversion_major 0\nversion_minor 0\nnode_from {own}\nnode_to {to}\nweight 15\n\
                     min_latency 0\nmax_latency 0\nmin_bandwidth 0\nmax_bandwidth 0\n\
                     recommended_transfer_size 0\nrecommended_sdma_engine_id_mask 0\nflags 1\n"
                ),
            );
        }
        Ok(())
    }
}
