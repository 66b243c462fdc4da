//! Where a card is on the PCI bus, and how near two cards are.

use std::path::Path;

use root::Root;

use crate::attribute::{self, Reading, Unknown};
use crate::readings::pcie;
use crate::{Address, Gpu, Vendor, pci};

/// What two cards' traffic over PCIe goes through, in nvidia-smi's words: the nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nearest {
    /// At most one PCIe switch.
    Pix,
    /// Several PCIe switches, and no host bridge.
    Pxb,
    /// The host bridge that both are below.
    Phb,
    /// Host bridges of one NUMA node.
    Node,
    /// The connection between NUMA nodes.
    Sys,
}

impl Nearest {
    /// The word of three or four capitals.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pix => "PIX",
            Self::Pxb => "PXB",
            Self::Phb => "PHB",
            Self::Node => "NODE",
            Self::Sys => "SYS",
        }
    }
}

/// A PCI function with a GPU, of any vendor.
#[derive(Debug, Clone)]
pub struct Card {
    pub address: Address,
    pub vendor: Vendor,
    /// The host bridge as sysfs names it: `pci0000:00`. `None` where sysfs does not tell.
    pub host_bridge: Option<String>,
    /// The bridges above it, the root port first.
    pub bridges: Vec<Address>,
    /// How many of them, at the end, are on the card itself: the switch that AMD's cards have.
    pub own_bridges: usize,
    pub numa_node: Reading<u32>,
    /// The CPUs of that node, as the kernel lists them: `0-15,64-79`.
    pub local_cpus: Reading<String>,
    /// The link of the card to the machine, in transfers a second. Of another vendor's card it is not read.
    pub speed: Reading<f64>,
    /// The lanes of that link.
    pub width: Reading<u32>,
    /// The places in `Machine::gpus` of what this card gives.
    pub gpus: Vec<usize>,
}

/// AMD's graphics division, whose ids the switch on a card has. Bridges of AMD's processors have 1022.
const ON_CARD: u64 = 0x1002;

impl Card {
    pub(super) fn read(root: &Root, gpu: &Gpu, address: Address) -> Self {
        let link = root.read_link(pci::folder(address)).unwrap_or_default();
        // Where a host bridge is below another device (`platform/…/pci0000:00`), its name is the last of that form.
        let mut names = link.iter().filter_map(|name| name.to_str());
        let host_bridge =
            names.rfind(|name| name.starts_with("pci") && name.contains(':')).map(str::to_owned);
        let bridges = pci::bridges(root, address);
        let is_on_card = |bridge: &&Address| {
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
        Self {
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

    /// The bridges between the card and its host bridge.
    fn bridges_off_card(&self) -> &[Address] {
        self.bridges.get(..self.bridges.len().saturating_sub(self.own_bridges)).unwrap_or_default()
    }

    /// `is_one_node`: whether the machine has only one NUMA node, where the kernel names none for a card.
    pub(super) fn nearest(&self, other: &Self, is_one_node: bool) -> Reading<Nearest> {
        let no_place = |card: &Self| {
            Unknown::because(format!("sysfs does not say where {} is on the bus", card.address))
        };
        let host = self.host_bridge.as_ref().ok_or_else(|| no_place(self))?;
        let others = other.host_bridge.as_ref().ok_or_else(|| no_place(other))?;
        if host != others {
            return match (&self.numa_node, &other.numa_node) {
                (Ok(node), Ok(others)) if node != others => Ok(Nearest::Sys),
                (Ok(_), Ok(_)) => Ok(Nearest::Node),
                _ if is_one_node => Ok(Nearest::Node),
                (Err(why), _) | (_, Err(why)) => {
                    Err(Unknown::because(format!("NODE or SYS, which is not known: {why}")))
                }
            };
        }
        let (above, others) = (self.bridges_off_card(), other.bridges_off_card());
        let shared = above.iter().zip(others).take_while(|(a, b)| a == b).count();
        Ok(match (shared, above.len().max(others.len()).saturating_sub(shared)) {
            (0, _) => Nearest::Phb,
            (_, 0 | 1) => Nearest::Pix,
            _ => Nearest::Pxb,
        })
    }
}

/// Why a card's link is not read. From Linux 6.17 on, a read of it wakes a suspended card (pci-sysfs.c).
fn unasked(root: &Root, gpu: &Gpu, address: Address) -> Option<Unknown> {
    if gpu.vendor != Vendor::Amd {
        return Some(Unknown::because("not read from another vendor's card"));
    }
    pci::asleep(root, address)
}

fn speed(root: &Root, address: Address) -> Reading<f64> {
    let path = pci::folder(address).join("current_link_speed");
    let text = attribute::text(root, &path)?;
    let unknown = || Unknown::because(format!("{} says {text:?}", root.shown(&path).display()));
    let speed = pcie::transfers_per_second(&text);
    speed.ok_or_else(|| attribute::not_a("speed of a link", &text, &root.shown(&path)))?.ok_or_else(unknown)
}

fn width(root: &Root, address: Address) -> Reading<u32> {
    let path = pci::folder(address).join("current_link_width");
    let lanes = attribute::number(root, &path)?;
    let none = || Unknown::because(format!("{} says {lanes}: no link", root.shown(&path).display()));
    if pcie::is_width(lanes) { Ok(lanes) } else { Err(none()) }
}

/// Whether the kernel has one NUMA node and no more (drivers/base/node.c).
pub(super) fn is_one_node(root: &Root) -> bool {
    attribute::text(root, Path::new("/sys/devices/system/node/online")).is_ok_and(|online| online == "0")
}
