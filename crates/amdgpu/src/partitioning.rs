//! How each card can be divided: amdgpu's partition files (amdgpu_gfx.c, amdgpu_gmc.c, amdgpu_xcp.c), joined with KFD's
//! nodes.

use std::path::Path;

use inventory::partitioning::{Card, Chip, Compute, Device, Memory, NoMode};
use inventory::{Inventory, Partition, PciAddress, Reading, Unknown, names};
use root::Root;

use crate::{attribute, pci};

/// The files of the two modes in a card's folder.
pub const COMPUTE: &str = "current_compute_partition";
pub const MEMORY: &str = "current_memory_partition";

/// amdgpu's word for a list without modes.
const NONE: &str = "Not supported";

/// Reads the modes that a card is in, as its first partition has them.
pub(crate) fn first_of(root: &Root, address: PciAddress) -> Partition {
    let folder = pci::folder(address);
    let mode = |name| attribute::text(root, &folder.join(name));
    Partition { compute: mode(COMPUTE), memory: mode(MEMORY), id: 0 }
}

/// Reads the modes of each of AMD's cards that amdgpu drives, in the order of the machine's GPUs. A suspended card is not
/// woken: each value has the reason.
#[must_use]
pub fn read(root: &Root, inventory: &Inventory) -> Vec<Card> {
    let driven = inventory.cards().into_iter().filter(|card| card.first.is_driven_by_amdgpu());
    driven.filter_map(|card| Some(of_card(root, card.first.pci?, &card))).collect()
}

fn of_card(root: &Root, pci: PciAddress, card: &inventory::Card<'_>) -> Card {
    let first = card.first;
    let asleep = pci::asleep(root, pci);
    let folder = pci::folder(pci);
    let text = |name: &str| match &asleep {
        Some(why) => Err(why.clone()),
        None => attribute::text(root, &folder.join(name)),
    };
    let shown = |name: &str| root.shown(folder.join(name));
    let compute = |name| one(&text(name)?, Compute::parse, &shown(name));
    let compute_modes = |name| list(&text(name)?, Compute::parse, &shown(name));
    let memory = |name| one(&text(name)?, Memory::parse, &shown(name));
    let memory_modes = |name| list(&text(name)?, Memory::parse, &shown(name));
    let total = match &asleep {
        Some(why) => Err(why.clone()),
        None => attribute::number(root, &folder.join("mem_info_vram_total")),
    };
    Card {
        pci,
        name: names::of(first),
        chip: first.device_id.and_then(Chip::of),
        gfx: first.gfx.clone(),
        sriov: first.sriov,
        hive_id: first.hive_id,
        is_writable: root.stat(folder.join(COMPUTE)).is_ok_and(|meta| meta.mode & 0o200 != 0),
        compute: compute(COMPUTE),
        memory: memory(MEMORY),
        compute_available: compute_modes("available_compute_partition"),
        compute_supported: compute_modes("compute_partition_config/supported_xcp_configs"),
        memory_available: memory_modes("available_memory_partition"),
        memory_bytes: total,
        shares_domains: text("compute_partition_mem_alloc_mode").is_ok_and(|mode| mode == "ALL"),
        devices: card.gpus.iter().filter(|gpu| gpu.kfd_node.is_some()).map(|gpu| device(gpu)).collect(),
    }
}

fn device(gpu: &inventory::Gpu) -> Device {
    let name = |node: &inventory::DeviceNode| Some(node.path.file_name()?.to_str()?.to_owned());
    Device {
        index: gpu.index,
        partition: gpu.partition.as_ref().map_or(0, |partition| partition.id),
        render: gpu.render.as_ref().and_then(name),
        xcds: gpu.xcds,
        memory_bytes: gpu.vram_bytes.clone(),
    }
}

/// A file's one mode. `UNKNOWN` is what amdgpu prints where the hardware says nothing that it knows.
fn one<M>(text: &str, parse: impl Fn(&str) -> Result<M, NoMode>, shown: &Path) -> Reading<M> {
    parse(text.trim()).map_err(|no| Unknown::because(format!("{}: {no}", shown.display())))
}

/// A file's list of modes: `SPX, DPX, CPX`.
fn list<M>(text: &str, parse: impl Fn(&str) -> Result<M, NoMode>, shown: &Path) -> Reading<Vec<M>> {
    if text.trim() == NONE {
        return Err(Unknown::absent(format!("{} says {NONE:?}", shown.display())));
    }
    let modes = text.split(',').map(|mode| one(mode, &parse, shown));
    modes.collect()
}
