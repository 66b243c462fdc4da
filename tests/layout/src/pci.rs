//! The folder of a PCI function in sysfs (drivers/pci/pci-sysfs.c).

use crate::tree::relative;
use crate::{Address, Entry, Error, Gpu, Tree};

/// A PCI-to-PCI bridge, in place of whatever a real machine has above its GPUs: AMD's own
/// "GPP bridge" of the Ryzen and EPYC root complexes.
const BRIDGE: (u16, u16) = (0x1022, 0x14cd);
const BRIDGE_CLASS: u32 = 0x06_0400;

/// Adds a GPU's PCI folder and the links to it; answers the folder.
pub(crate) fn lay_out(gpu: &Gpu, tree: &mut Tree) -> Result<String, Error> {
    let address: Address = gpu.address.parse()?;
    let parent = match &gpu.behind {
        None => host_bridge(address),
        Some(bridges) => add_bridges(bridges, address.bus, tree)?,
    };
    let folder = format!("{parent}/{address}");
    let by_address = format!("/sys/bus/pci/devices/{address}");
    tree.claim(&by_address, Entry::Link(relative(&by_address, &folder)))?;
    common(&folder, address, &Identity::of(gpu), gpu.numa_node, tree);
    tree.put(&format!("{folder}/config"), header(&Identity::of(gpu), None));
    if let Some(driver) = &gpu.driver {
        let driver = format!("/sys/bus/pci/drivers/{driver}");
        let link = format!("{folder}/driver");
        tree.put(&link, Entry::Link(relative(&link, &driver)));
        let back = format!("{driver}/{address}");
        tree.put(&back, Entry::Link(relative(&back, &folder)));
    }
    for (name, entry) in &gpu.entries {
        tree.put(&format!("{folder}/{name}"), entry.clone());
    }
    Ok(folder)
}

/// The ids of a PCI function.
struct Identity<'a> {
    vendor: u16,
    device: u16,
    subsystem: (u16, u16),
    class: u32,
    revision: u8,
    driver: Option<&'a str>,
}

impl<'a> Identity<'a> {
    fn of(gpu: &'a Gpu) -> Self {
        Self {
            vendor: gpu.vendor,
            device: gpu.device,
            subsystem: gpu.subsystem,
            class: gpu.class,
            revision: gpu.revision,
            driver: gpu.driver.as_deref(),
        }
    }

    fn modalias(&self) -> String {
        let [_, base, sub, interface] = self.class.to_be_bytes();
        format!(
            "pci:v{:08X}d{:08X}sv{:08X}sd{:08X}bc{base:02X}sc{sub:02X}i{interface:02X}",
            self.vendor, self.device, self.subsystem.0, self.subsystem.1
        )
    }

    /// The order and spelling of `pci_uevent()`.
    fn uevent(&self, address: Address) -> String {
        let driver = self.driver.map(|driver| format!("DRIVER={driver}\n"));
        format!(
            "{}PCI_CLASS={:X}\nPCI_ID={:04X}:{:04X}\nPCI_SUBSYS_ID={:04X}:{:04X}\nPCI_SLOT_NAME={address}\nMODALIAS={}\n",
            driver.as_deref().unwrap_or(""),
            self.class,
            self.vendor,
            self.device,
            self.subsystem.0,
            self.subsystem.1,
            self.modalias(),
        )
    }
}

fn common(folder: &str, address: Address, identity: &Identity<'_>, numa_node: i32, tree: &mut Tree) {
    let files = [
        ("vendor", format!("{:#06x}\n", identity.vendor)),
        ("device", format!("{:#06x}\n", identity.device)),
        ("class", format!("{:#08x}\n", identity.class)),
        ("revision", format!("{:#04x}\n", identity.revision)),
        ("subsystem_vendor", format!("{:#06x}\n", identity.subsystem.0)),
        ("subsystem_device", format!("{:#06x}\n", identity.subsystem.1)),
        ("numa_node", format!("{numa_node}\n")),
        ("modalias", format!("{}\n", identity.modalias())),
        ("uevent", identity.uevent(address)),
        ("enable", "1\n".to_owned()),
        ("irq", "0\n".to_owned()),
        ("resource", "0x0000000000000000 0x0000000000000000 0x0000000000000000\n".repeat(13)),
        ("power/runtime_status", "active\n".to_owned()),
    ];
    for (name, text) in files {
        tree.put(&format!("{folder}/{name}"), text);
    }
    let link = format!("{folder}/subsystem");
    tree.put(&link, Entry::Link(relative(&link, "/sys/bus/pci")));
}

/// The root bus is named after its own number: a function without a bridge above it is on it.
fn host_bridge(address: Address) -> String {
    format!("/sys/devices/pci{:04x}:{:02x}", address.domain, address.bus)
}

/// Adds bridges, one below the other; answers the folder of the last.
fn add_bridges(bridges: &str, bus: u8, tree: &mut Tree) -> Result<String, Error> {
    let bridges: Vec<Address> = bridges.split('/').map(str::parse).collect::<Result<_, _>>()?;
    let mut folder = bridges.first().copied().map(host_bridge).unwrap_or_default();
    for (at, bridge) in bridges.iter().enumerate() {
        folder = format!("{folder}/{bridge}");
        add_bridge(*bridge, &folder, bridges.get(at + 1).map_or(bus, |next| next.bus), tree);
    }
    Ok(folder)
}

fn add_bridge(bridge: Address, folder: &str, secondary_bus: u8, tree: &mut Tree) {
    let identity = Identity {
        vendor: BRIDGE.0,
        device: BRIDGE.1,
        subsystem: (0, 0),
        class: BRIDGE_CLASS,
        revision: 0,
        driver: Some("pcieport"),
    };
    common(folder, bridge, &identity, -1, tree);
    tree.put(&format!("{folder}/config"), header(&identity, Some((bridge.bus, secondary_bus))));
    let by_address = format!("/sys/bus/pci/devices/{bridge}");
    tree.put(&by_address, Entry::Link(relative(&by_address, folder)));
    let link = format!("{folder}/driver");
    tree.put(&link, Entry::Link(relative(&link, "/sys/bus/pci/drivers/pcieport")));
    let back = format!("/sys/bus/pci/drivers/pcieport/{bridge}");
    tree.put(&back, Entry::Link(relative(&back, folder)));
}

/// The 64 bytes of the configuration header (PCI Local Bus 3.0, 6.1; type 1 for a bridge with
/// its primary and secondary bus). No memory windows, no capabilities.
fn header(identity: &Identity<'_>, bridge: Option<(u8, u8)>) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let [_, base, sub, interface] = identity.class.to_be_bytes();
    let mut at = |offset: usize, value: &[u8]| {
        bytes.iter_mut().skip(offset).zip(value).for_each(|(byte, new)| *byte = *new);
    };
    at(0x00, &identity.vendor.to_le_bytes());
    at(0x02, &identity.device.to_le_bytes());
    at(0x08, &[identity.revision, interface, sub, base]);
    match bridge {
        None => {
            at(0x2c, &identity.subsystem.0.to_le_bytes());
            at(0x2e, &identity.subsystem.1.to_le_bytes());
        }
        Some((primary, secondary)) => {
            at(0x0e, &[1]);
            at(0x18, &[primary, secondary, secondary]);
        }
    }
    bytes
}
