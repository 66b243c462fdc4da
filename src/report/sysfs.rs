//! The GPUs as sysfs, KFD and /dev show them: what the reader of GPUs read, so that a report is the machine that `detect`,
//! `topology` and `metrics` see. A file that a kernel adds can be slow, change something, or hold a serial number: none is
//! taken that no reader asks for and no list here names.

use std::collections::BTreeSet;
use std::path::Path;

use inventory::topology::Topology;
use inventory::{Inventory, PciAddress, Vendor};
use root::Error;
use telemetry::exporter::Exporter;

use super::collect::Collector;

const DEVICES: &str = "/sys/bus/pci/devices";
/// A folder for each process that computes.
const PROCESSES: &str = "/sys/class/kfd/kfd/proc";
const PARAMETERS: &str = "/sys/module/amdgpu/parameters";

/// What no reader asks of a GPU's function: which board's revision it is, whether it has the console, and whether the kernel
/// may suspend it.
const FUNCTION: [&str; 3] = ["revision", "boot_vga", "power/control"];

/// What no reader asks of a card that is awake: which board and memory it has, and the modes that it can take.
const CARD: [&str; 4] =
    ["product_number", "mem_info_vram_vendor", "available_compute_partition", "available_memory_partition"];

/// # Errors
/// The Root cannot be opened again.
pub(super) fn collect(collector: &mut Collector<'_>, inventory: &Inventory) -> Result<(), Error> {
    let root = collector.root.place().open()?.keeping_reads();
    let topology = amdgpu::topology(&root, inventory);
    let snapshot = Exporter::default().scrape(&root, 0.0);
    let reads = root.reads();
    let functions = functions(inventory, &topology);
    let has_processes = reads.keys().any(|path| path.parent() == Some(Path::new(PROCESSES)));
    for (path, kept) in reads.into_iter().filter(|(path, _)| path.starts_with("/sys")) {
        if path.starts_with(PROCESSES) && has_processes {
            collector.leave_out(Path::new(PROCESSES), "who uses the GPUs stands in no report");
        } else if function_of(&path).is_none_or(|function| functions.contains(&function)) {
            collector.kept(&path, kept);
        }
    }
    let suspended: BTreeSet<PciAddress> = snapshot
        .cards
        .iter()
        .filter(|card| card.readings.is_suspended())
        .filter_map(|card| card.pci)
        .collect();
    for card in &topology.cards {
        let folder = Path::new(DEVICES).join(card.address.to_string());
        collector.attributes(&folder, &FUNCTION);
        if suspended.contains(&card.address) {
            collector.leave_out(&folder, "is suspended, and is not woken to be read further");
        } else if card.vendor == Vendor::Amd {
            collector.attributes(&folder, &CARD);
        }
    }
    // The parameters with which the driver was loaded.
    for name in collector.names(Path::new(PARAMETERS)) {
        collector.attribute(&Path::new(PARAMETERS).join(name));
    }
    nodes(collector);
    Ok(())
}

/// GPUs, the bridges above them, and what may be a GPU. The reader asks every other function what it is, too: a report says
/// nothing of it.
fn functions(inventory: &Inventory, topology: &Topology) -> BTreeSet<PciAddress> {
    let unread = inventory.unread.iter().filter_map(|unread| function_of(&unread.file()?));
    let cards = topology.cards.iter().flat_map(|card| card.bridges.iter().chain([&card.address]));
    cards.copied().chain(unread).collect()
}

/// The PCI function that a path belongs to.
fn function_of(path: &Path) -> Option<PciAddress> {
    path.strip_prefix(DEVICES).ok()?.iter().next()?.to_str()?.parse().ok()
}

fn nodes(collector: &mut Collector<'_>) {
    collector.node(Path::new("/dev/kfd"));
    // A machine without graphics has no such folder.
    let nodes = collector.root.list("/dev/dri").unwrap_or_default();
    for name in nodes.iter().filter_map(|name| name.to_str()).filter(|name| is_minor(name)) {
        collector.node(&Path::new("/dev/dri").join(name));
    }
}

/// `card0` and `renderD128`, not a folder such as `by-path`.
fn is_minor(name: &str) -> bool {
    let number = name.strip_prefix("renderD").or_else(|| name.strip_prefix("card"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
