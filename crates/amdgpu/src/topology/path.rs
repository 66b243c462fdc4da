//! Finds where a card is on the PCI bus.

use std::path::Path;

use inventory::topology::Card;
use inventory::{Gpu, PciAddress, Reading, Unknown, Vendor};
use root::Root;

use crate::readings::pcie;
use crate::{attribute, pci};

/// AMD's graphics division, whose ids the switch on a card has. Bridges of AMD's processors have 1022.
const ON_CARD: u64 = 0x1002;

pub(super) fn card(root: &Root, gpu: &Gpu, address: PciAddress) -> Card {
    let link = root.read_link(pci::folder(address)).unwrap_or_default();
    // Where a host bridge is below another device (`platform/…/pci0000:00`), its name is the last of that form.
    let mut names = link.iter().filter_map(|name| name.to_str());
    let host_bridge = names.rfind(|name| name.starts_with("pci") && name.contains(':')).map(str::to_owned);
    let bridges = pci::bridges(root, address);
    let is_on_card = |bridge: &&PciAddress| {
        gpu.vendor == Vendor::Amd
            && attribute::hexadecimal(root, &pci::folder(**bridge).join("vendor")) == Ok(ON_CARD)
    };
    let own_bridges = bridges.iter().rev().take_while(is_on_card).count();
    // The card's own file has the link behind its switch.
    let upstream = bridges.iter().rev().take(own_bridges).next_back().copied().unwrap_or(address);
    let (speed, width) = match unasked(root, gpu, address) {
        Some(why) => (Err(why.clone()), Err(why)),
        None => (speed(root, upstream), width(root, upstream)),
    };
    Card {
        address,
        vendor: gpu.vendor,
        host_bridge,
        bridges,
        own_bridges,
        numa_node: gpu.numa_node.clone(),
        local_cpus: attribute::text(root, &pci::folder(address).join("local_cpulist")),
        speed,
        width,
        gpus: Vec::new(),
    }
}

/// Why a card's link is not read. From Linux 6.17 on, a read of it wakes a suspended card (pci-sysfs.c).
fn unasked(root: &Root, gpu: &Gpu, address: PciAddress) -> Option<Unknown> {
    if gpu.vendor != Vendor::Amd {
        return Some(Unknown::because("not read from another vendor's card"));
    }
    pci::asleep(root, address)
}

fn speed(root: &Root, address: PciAddress) -> Reading<f64> {
    let path = pci::folder(address).join("current_link_speed");
    let text = attribute::text(root, &path)?;
    let unknown = || Unknown::because(format!("{} says {text:?}", root.shown(&path).display()));
    let speed = pcie::transfers_per_second(&text);
    speed.ok_or_else(|| attribute::not_a("speed of a link", &text, &root.shown(&path)))?.ok_or_else(unknown)
}

fn width(root: &Root, address: PciAddress) -> Reading<u32> {
    let path = pci::folder(address).join("current_link_width");
    let lanes = attribute::number(root, &path)?;
    let none = || Unknown::because(format!("{} says {lanes}: no link", root.shown(&path).display()));
    if pcie::is_width(lanes) { Ok(lanes) } else { Err(none()) }
}

/// Whether the kernel has exactly one NUMA node (drivers/base/node.c).
pub(super) fn is_one_node(root: &Root) -> bool {
    attribute::text(root, Path::new("/sys/devices/system/node/online")).is_ok_and(|online| online == "0")
}
