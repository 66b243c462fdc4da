use crate::{
    DeviceNode, Gfx, NeverComputes, Partition, PciAddress, Problem, Reading, Sriov, Unknown, Uuid, Vendor,
};

/// What a container can be given: a card, or one partition of a card.
#[derive(Debug, Clone)]
pub struct Gpu {
    /// AMD's GPUs are numbered in KFD node order, which HIP uses; those that KFD does not know follow in
    /// PCI order. Other vendors' have no number.
    pub index: Option<u32>,
    pub vendor: Vendor,
    /// PCI ids; those of a partition are its card's.
    pub vendor_id: Option<u16>,
    pub device_id: Option<u16>,
    /// The card's address, the same for all its partitions.
    pub pci: Option<PciAddress>,
    pub sriov: Option<Sriov>,
    /// The driver's own name for the product; consumer cards have none.
    pub product_name: Reading<String>,
    pub driver: Option<String>,
    pub gfx: Reading<Gfx>,
    pub uuid: Reading<Uuid>,
    /// The unique id of this GPU's card, by which all its partitions are known. Before ROCm 7.0.1 they have no other.
    pub card_uuid: Option<Uuid>,
    pub card: Option<DeviceNode>,
    pub render: Option<DeviceNode>,
    /// The platform device of a partition beyond its card's first, such as `amdgpu_xcp_30`; `None` where the nodes are the
    /// PCI device's.
    pub platform_device: Option<String>,
    pub kfd_node: Option<u32>,
    pub hive_id: Option<u64>,
    /// How many XCDs the GPU has; `None` where KFD does not say.
    pub xcds: Option<u32>,
    /// How many SIMD units and compute units the GPU has; `None` where KFD does not say.
    pub simds: Option<u32>,
    pub compute_units: Option<u32>,
    pub numa_node: Reading<u32>,
    /// Whether the GPU is the graphics of an APU, with few compute units and the system's memory. An MI300A
    /// is not: its GPU is an accelerator. False where KFD does not know the GPU.
    pub is_integrated: bool,
    /// The GPU's own memory in bytes: a card's VRAM, or the frame buffer that KFD gives a partition.
    pub vram_bytes: Reading<u64>,
    pub partition: Option<Partition>,
    /// Why a container cannot use it; empty when it can.
    pub problems: Vec<Problem>,
}

impl Gpu {
    /// A GPU of which nothing was read: `why` is the reason of each reading.
    #[must_use]
    pub fn unread(vendor: Vendor, why: &str) -> Self {
        let unknown = || Unknown::because(why);
        Self {
            index: None,
            vendor,
            vendor_id: None,
            device_id: None,
            pci: None,
            sriov: None,
            product_name: Err(unknown()),
            driver: None,
            gfx: Err(unknown()),
            uuid: Err(unknown()),
            card_uuid: None,
            card: None,
            render: None,
            platform_device: None,
            kfd_node: None,
            hive_id: None,
            xcds: None,
            simds: None,
            compute_units: None,
            numa_node: Err(unknown()),
            is_integrated: false,
            vram_bytes: Err(unknown()),
            partition: None,
            problems: Vec::new(),
        }
    }

    #[must_use]
    pub fn is_driven_by_amdgpu(&self) -> bool {
        self.driver.as_deref() == Some("amdgpu")
    }

    /// Whether a container can use the GPU: it has no problem. No other code decides this.
    #[must_use]
    pub fn usable(&self) -> bool {
        self.problems.is_empty()
    }

    /// The problems of the GPU without those of the reader: a sandbox may lack nodes in /dev, and a device cgroup may hide
    /// GPUs from KFD's list.
    pub fn own_problems(&self) -> impl Iterator<Item = &Problem> {
        let is_own = |it: &&Problem| !matches!(it, Problem::Node(_) | Problem::Kfd(_) | Problem::HiddenByKfd);
        self.problems.iter().filter(is_own)
    }

    /// Why no kernel lets it compute, if that is so.
    #[must_use]
    pub fn never_computes(&self) -> Option<NeverComputes> {
        self.problems.iter().find_map(|problem| match problem {
            Problem::NeverComputes(never) => Some(*never),
            _ => None,
        })
    }

    /// The uuid that this GPU shares with its card's other partitions: it names the card.
    #[must_use]
    pub fn shared_uuid(&self) -> Option<Uuid> {
        self.card_uuid.filter(|uuid| self.uuid.as_ref().ok() != Some(uuid))
    }
}
