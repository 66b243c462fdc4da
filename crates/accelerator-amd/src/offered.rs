//! Which GPUs TensorFusion gets, and what it calls them.

use inventory::partitioning::{self, Compute};
use inventory::{Card, Gpu, Inventory, PciAddress, Unknown};

/// In either ABI: the most devices that a hypervisor takes.
pub(crate) const MOST: usize = 64;

/// A GPU that TensorFusion can give away.
#[derive(Debug, Clone)]
pub(crate) struct Offered<'m> {
    pub(crate) uuid: String,
    pub(crate) gpu: &'m Gpu,
    /// The place of the GPU's card in the list of cards that the GPUs were taken from.
    pub(crate) card: usize,
    /// What the GPU is of its card, where the card's readings are not this GPU's alone.
    pub(crate) part: Option<Part>,
}

/// A partition's mode and memory in bytes, as the driver reports them or as they follow from KFD's nodes and the chip.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) mode: Option<Compute>,
    pub(crate) memory_bytes: Option<u64>,
}

/// The GPUs without a problem of their own, in the order of the Inventory, at most [`MOST`]. The graphics of an APU counts
/// only where there is no other GPU. `divided`: how the cards are partitioned. `node`: the name of the Kubernetes node, if
/// there is one. Without `divided`, a partition's mode is unknown, and its memory is KFD's figure.
pub(crate) fn offered<'m>(
    cards: &[Card<'m>],
    divided: &[partitioning::Card],
    node: Option<&str>,
) -> Vec<Offered<'m>> {
    let is_usable = |gpu: &&Gpu| gpu.own_problems().next().is_none();
    let usable = || cards.iter().flat_map(|card| card.gpus.iter().copied()).filter(is_usable);
    let has_cards = usable().any(|gpu| !gpu.is_integrated);
    let mut all = Vec::new();
    for (place, card) in cards.iter().enumerate() {
        // A GPU of which sysfs does not tell the card has that problem.
        let Some(address) = card.first.pci else { continue };
        let is_part = card.is_partitioned();
        let modes = divided.iter().find(|it| it.pci == address);
        let gpus = card.gpus.iter().copied().filter(is_usable);
        all.extend(gpus.filter(|gpu| !(has_cards && gpu.is_integrated)).map(|gpu| Offered {
            uuid: uuid(gpu, address, is_part, node),
            gpu,
            card: place,
            part: is_part.then(|| part(gpu, modes)),
        }));
    }
    all.truncate(MOST);
    all
}

fn part(gpu: &Gpu, card: Option<&partitioning::Card>) -> Part {
    let id = gpu.partition.as_ref().map(|partition| partition.id);
    let device = card.and_then(|card| card.devices.iter().find(|device| Some(device.partition) == id));
    let memory = card.zip(device).and_then(|(card, device)| card.memory_of(device).ok());
    Part {
        mode: card.and_then(|card| card.compute_mode().ok()).map(|mode| mode.value),
        memory_bytes: memory.map(|memory| memory.value).or_else(|| gpu.vram_bytes.as_ref().ok().copied()),
    }
}

/// Sentences on the GPUs that are not among the offered ones, and on what the machine hides.
pub(crate) fn left_out(inventory: &Inventory, offered: &[Offered<'_>]) -> Vec<String> {
    let why = |gpu: &Gpu| {
        let problems: Vec<String> = gpu.own_problems().map(ToString::to_string).collect();
        if !problems.is_empty() {
            problems.join("; ")
        } else if gpu.is_integrated {
            "a processor's graphics counts only where there is no other GPU".to_owned()
        } else {
            format!("TensorFusion takes no more than {MOST}")
        }
    };
    let missing = inventory.amd().filter(|gpu| !offered.iter().any(|it| std::ptr::eq(it.gpu, *gpu)));
    let sentence = |gpu: &Gpu| {
        let name = gpu.pci.map_or_else(|| "a GPU".to_owned(), |address| address.to_string());
        format!("{name} is left out: {}", why(gpu))
    };
    inventory.problems().into_iter().chain(missing.map(sentence)).collect()
}

/// What the hypervisor calls the GPU, whose Kubernetes object has this name in the whole cluster, in lower case.
fn uuid(gpu: &Gpu, address: PciAddress, is_part: bool, node: Option<&str>) -> String {
    if let Ok(own) = &gpu.uuid {
        return own.to_string().to_lowercase();
    }
    let card = gpu.card_uuid.map(|uuid| uuid.to_string().to_lowercase());
    let card = card.unwrap_or_else(|| by_address(address, node));
    match gpu.partition.as_ref().filter(|_| is_part) {
        Some(partition) => format!("{card}-p{}", partition.id),
        None => card,
    }
}

/// Names a card by its address, with a hash of its node's name: another node may have a card at an equal address.
fn by_address(address: PciAddress, node: Option<&str>) -> String {
    let address = address.to_string().replace(':', "-");
    match node {
        Some(node) => format!("gpu-{:08x}-{address}", fnv_1a(node.as_bytes())),
        None => format!("gpu-{address}"),
    }
}

/// FNV-1a of 32 bits: std's hashers may differ between two releases of Rust.
fn fnv_1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// A NUMA node as C has it: -1 where it is not known.
pub(crate) fn numa_node(node: &Result<u32, Unknown>) -> i32 {
    node.as_ref().ok().and_then(|node| i32::try_from(*node).ok()).unwrap_or(-1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use inventory::{Partition, Uuid, Vendor};

    use super::*;

    fn gpu(pci: &str, own: Option<u64>, card: Option<u64>, partition: u32) -> Gpu {
        let unread = Unknown::because("not read");
        Gpu {
            pci: Some(pci.parse().unwrap()),
            uuid: own.and_then(Uuid::new).ok_or(unread.clone()),
            card_uuid: card.and_then(Uuid::new),
            partition: Some(Partition { id: partition, ..Partition::unread(&unread) }),
            ..Gpu::unread(Vendor::Amd, "not read")
        }
    }

    #[test]
    fn a_uuid_is_the_kernels_or_the_place() {
        let mi300x = gpu("0000:05:00.0", Some(0xAB12), Some(0xAB12), 0);
        assert_eq!(uuid(&mi300x, mi300x.pci.unwrap(), false, None), "gpu-000000000000ab12");
        let third = gpu("0000:05:00.0", None, Some(0xAB12), 3);
        assert_eq!(uuid(&third, third.pci.unwrap(), true, Some("node")), "gpu-000000000000ab12-p3");
        let bare = gpu("0000:c1:00.0", None, None, 0);
        assert_eq!(uuid(&bare, bare.pci.unwrap(), false, None), "gpu-0000-c1-00.0");
        assert_eq!(uuid(&bare, bare.pci.unwrap(), true, None), "gpu-0000-c1-00.0-p0");
        // The test vector of FNV's authors for "a".
        assert_eq!(uuid(&bare, bare.pci.unwrap(), false, Some("a")), "gpu-e40c292c-0000-c1-00.0");
    }

    #[test]
    fn every_uuid_names_a_kubernetes_object_and_fits() {
        for gpu in [gpu("10000:c1:00.0", None, None, 7), gpu("0000:c1:00.0", None, Some(u64::MAX), 63)] {
            let uuid = uuid(&gpu, gpu.pci.unwrap(), true, Some(&"n".repeat(253)));
            assert!(uuid.len() <= 63, "{uuid}");
            let is_label = |label: &str| {
                let is_edge =
                    |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
                label.chars().all(|c| c == '-' || is_edge(Some(c)))
                    && is_edge(label.chars().next())
                    && is_edge(label.chars().last())
            };
            assert!(uuid.split('.').all(is_label), "{uuid}");
        }
    }
}
