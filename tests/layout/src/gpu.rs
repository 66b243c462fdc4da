use crate::Entry;

/// A display controller or accelerator on the PCI bus: what `/sys/bus/pci/devices/DDDD:BB:DD.F`
/// says of it, and the DRM minors that its driver made.
#[derive(Debug, Clone)]
pub struct Gpu {
    pub(crate) address: String,
    pub(crate) behind: Option<String>,
    pub(crate) vendor: u16,
    pub(crate) device: u16,
    pub(crate) subsystem: (u16, u16),
    pub(crate) class: u32,
    pub(crate) revision: u8,
    pub(crate) numa_node: i32,
    pub(crate) driver: Option<String>,
    pub(crate) card: Option<u32>,
    pub(crate) render: Option<u32>,
    pub(crate) partitions: Vec<(u32, u32)>,
    pub(crate) entries: Vec<(String, Entry)>,
}

impl Gpu {
    /// A VGA controller (class 0x030000) at `address` (`0000:64:00.0`) without a driver.
    pub fn new(address: &str, vendor: u16, device: u16) -> Self {
        Self {
            address: address.to_owned(),
            behind: None,
            vendor,
            device,
            subsystem: (vendor, device),
            class: 0x03_0000,
            revision: 0,
            numa_node: -1,
            driver: None,
            card: None,
            render: None,
            partitions: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// An AMD GPU bound to amdgpu.
    pub fn amd(address: &str, device: u16) -> Self {
        Self::new(address, 0x1002, device).driver("amdgpu")
    }

    /// An NVIDIA GPU bound to nvidia.
    pub fn nvidia(address: &str, device: u16) -> Self {
        Self::new(address, 0x10de, device).driver("nvidia")
    }

    /// An Intel GPU bound to i915.
    pub fn intel(address: &str, device: u16) -> Self {
        Self::new(address, 0x8086, device).driver("i915")
    }

    /// The display of an ASPEED board management controller, as servers have one, bound to ast.
    pub fn aspeed(address: &str) -> Self {
        Self::new(address, 0x1a03, 0x2000).subsystem(0x1a03, 0x2000).revision(0x52).driver("ast")
    }

    /// Puts the function behind a PCI bridge at this address, or behind several: `0000:00:01.1/0000:01:00.0`, the root port
    /// first. Functions may share them.
    #[must_use]
    pub fn behind(mut self, bridge: &str) -> Self {
        self.behind = Some(bridge.to_owned());
        self
    }

    /// Sets the class code, 24 bits: 0x030000 VGA, 0x038000 other display, 0x120000 accelerator.
    #[must_use]
    pub fn class(mut self, class: u32) -> Self {
        self.class = class;
        self
    }

    /// Sets the revision.
    #[must_use]
    pub fn revision(mut self, revision: u8) -> Self {
        self.revision = revision;
        self
    }

    /// Sets the subsystem's vendor and device.
    #[must_use]
    pub fn subsystem(mut self, vendor: u16, device: u16) -> Self {
        self.subsystem = (vendor, device);
        self
    }

    /// Sets the NUMA node; -1, as it is at first, is the kernel's word for none.
    #[must_use]
    pub fn numa_node(mut self, node: i32) -> Self {
        self.numa_node = node;
        self
    }

    /// Binds a driver.
    #[must_use]
    pub fn driver(mut self, driver: &str) -> Self {
        self.driver = Some(driver.to_owned());
        self
    }

    /// Takes the driver away, and with it the minors.
    #[must_use]
    pub fn unbound(mut self) -> Self {
        self.driver = None;
        self.card = None;
        self.render = None;
        self.partitions.clear();
        self
    }

    /// Gives it `/dev/dri/cardN`.
    #[must_use]
    pub fn card(mut self, minor: u32) -> Self {
        self.card = Some(minor);
        self
    }

    /// Gives it `/dev/dri/renderDN`; render minors begin at 128.
    #[must_use]
    pub fn render(mut self, minor: u32) -> Self {
        self.render = Some(minor);
        self
    }

    /// Adds a further partition: a platform device amdgpu_xcp with minors of its own. The first
    /// partition is the PCI function itself.
    #[must_use]
    pub fn partition(mut self, card: u32, render: u32) -> Self {
        self.partitions.push((card, render));
        self
    }

    /// Adds a file in the PCI folder: one value and a line's end, as sysfs writes it.
    #[must_use]
    pub fn attribute(self, name: &str, value: &str) -> Self {
        self.entry(name, format!("{value}\n"))
    }

    /// Adds anything in the PCI folder, as it is; `name` may be a path (`hwmon/hwmon0/name`).
    #[must_use]
    pub fn entry(mut self, name: &str, entry: impl Into<Entry>) -> Self {
        self.entries.push((name.to_owned(), entry.into()));
        self
    }

    /// Makes it an SR-IOV physical function with these virtual functions switched on, out of
    /// `total` possible ones. The functions themselves are GPUs of their own.
    #[must_use]
    pub fn virtual_functions(mut self, total: u16, functions: &[&str]) -> Self {
        self = self.attribute("sriov_totalvfs", &total.to_string());
        self = self.attribute("sriov_numvfs", &functions.len().to_string());
        for (number, function) in functions.iter().enumerate() {
            self = self.entry(&format!("virtfn{number}"), Entry::Link(format!("../{function}")));
        }
        self
    }

    /// Makes the GPU an SR-IOV virtual function of the GPU at `physical`, which is on the same bus.
    #[must_use]
    pub fn virtual_function_of(self, physical: &str) -> Self {
        self.entry("physfn", Entry::Link(format!("../{physical}")))
    }
}
