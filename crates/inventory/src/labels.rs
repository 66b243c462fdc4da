//! Labels by which a Kubernetes node says what GPUs it has: the names and values of AMD's node labeller
//! (ROCm/k8s-device-plugin, cmd/k8s-node-labeller), and the plain labels by which pods select a node.
//!
//! AMD's labeller counts what amdgpu drives: a card, and each partition beside a card's first. What it reads of KFD counts
//! partitions. What it reads of a card's PCI device counts cards: device id, family, product name and firmware.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Gfx, Gpu, Inventory, PciAddress, Unknown, partitioning};

/// One label, or the labels of one property of AMD's labeller, by the flag that switches it on there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    Vram,
    CuCount,
    SimdCount,
    DeviceId,
    Family,
    ProductName,
    DriverVersion,
    DriverSrcVersion,
    ComputeMemoryPartition,
    ComputePartitioningSupported,
    MemoryPartitioningSupported,
    /// Only beneath beta.amd.com.
    Firmware,
}

impl Property {
    /// The properties that AMD's GPU Operator switches on.
    pub const USUAL: [Self; 7] = [
        Self::Vram,
        Self::CuCount,
        Self::SimdCount,
        Self::DeviceId,
        Self::Family,
        Self::ProductName,
        Self::DriverVersion,
    ];

    /// The part of the label's name behind `gpu.`
    fn name(self) -> &'static str {
        match self {
            Self::Vram => "vram",
            Self::CuCount => "cu-count",
            Self::SimdCount => "simd-count",
            Self::DeviceId => "device-id",
            Self::Family => "family",
            Self::ProductName => "product-name",
            Self::DriverVersion => "driver-version",
            Self::DriverSrcVersion => "driver-src-version",
            Self::ComputeMemoryPartition => "compute-memory-partition",
            Self::ComputePartitioningSupported => "compute-partitioning-supported",
            Self::MemoryPartitioningSupported => "memory-partitioning-supported",
            Self::Firmware => "firmware",
        }
    }
}

/// Labels by their names.
pub type Labels = BTreeMap<String, String>;

/// The labels by which pods select a node where a container can use a GPU.
const PRESENT: [&str; 3] = ["gpu", "amd.com/gpu", "amdgpu.com/gpu.present"];

/// Whether [`labels`], or AMD's labeller, sets a label of this name for some node.
#[must_use]
pub fn is_of_gpus(name: &str) -> bool {
    PRESENT.contains(&name) || name.starts_with("amd.com/gpu.") || name.starts_with("beta.amd.com/gpu.")
}

/// The versions of each card's firmware, by its name in the driver's folder `fw_version`.
pub type Firmware = BTreeMap<PciAddress, Vec<(String, String)>>;

/// The labels of a node with these GPUs. None where amdgpu drives no GPU. `cards`: how they can be divided.
#[must_use]
pub fn labels(
    inventory: &Inventory,
    cards: &[partitioning::Card],
    firmware: &Firmware,
    wanted: &BTreeSet<Property>,
) -> Labels {
    let mut labels = Labels::new();
    let gpus: Vec<&Gpu> = inventory.amd().filter(|gpu| gpu.is_driven_by_amdgpu()).collect();
    if gpus.is_empty() {
        return labels;
    }
    if gpus.iter().any(|gpu| gpu.usable()) {
        for name in PRESENT {
            labels.insert(name.to_owned(), "true".to_owned());
        }
    }
    let firsts: Vec<&Gpu> =
        inventory.cards().iter().map(|card| card.first).filter(|gpu| gpu.is_driven_by_amdgpu()).collect();
    let read = Read { inventory, gpus, firsts, cards, firmware };
    for property in wanted {
        labels.extend(read.of_property(*property));
    }
    labels
}

/// What labels name.
struct Read<'r> {
    inventory: &'r Inventory,
    gpus: Vec<&'r Gpu>,
    /// Of each card the first GPU, which is the card's PCI device.
    firsts: Vec<&'r Gpu>,
    cards: &'r [partitioning::Card],
    firmware: &'r Firmware,
}

impl Read<'_> {
    fn of_property(&self, property: Property) -> Labels {
        let (gpus, firsts, cards) = (&*self.gpus, &*self.firsts, self.cards);
        let module = &self.inventory.amdgpu;
        match property {
            Property::Vram => counted(property, gpus, |gpu| {
                let bytes = *gpu.vram_bytes.as_ref().ok().filter(|_| gpu.kfd_node.is_some())?;
                // To the nearest gibibyte.
                Some(format!("{}G", bytes.saturating_add(1 << 29) >> 30))
            }),
            Property::CuCount => counted(property, gpus, |gpu| Some(gpu.compute_units?.to_string())),
            Property::SimdCount => counted(property, gpus, |gpu| Some(gpu.simds?.to_string())),
            Property::DeviceId => counted(property, firsts, |gpu| Some(format!("{:04x}", gpu.device_id?))),
            Property::Family => {
                counted(property, firsts, |gpu| Some(family(gpu.gfx.clone().ok()?)?.to_owned()))
            }
            Property::ProductName => {
                counted(property, firsts, |gpu| value(gpu.product_name.as_ref().ok()?, LONGEST_COUNTED_NAME))
            }
            Property::DriverVersion => {
                single(property, module.version.as_deref().ok().and_then(|it| value(it, LONGEST)))
            }
            Property::DriverSrcVersion => {
                single(property, module.srcversion.as_deref().ok().and_then(|it| value(it, LONGEST)))
            }
            Property::ComputeMemoryPartition => {
                let all: Option<Vec<Option<String>>> = cards.iter().map(modes).collect();
                let all: BTreeSet<String> = all.into_iter().flatten().flatten().collect();
                let mut all = all.into_iter();
                // Only where all cards agree.
                single(property, all.next().filter(|_| all.next().is_none()))
            }
            Property::ComputePartitioningSupported => single(
                property,
                is_supported(cards.iter().map(|card| card.compute_available.as_ref().map(drop))),
            ),
            Property::MemoryPartitioningSupported => single(
                property,
                is_supported(cards.iter().map(|card| card.memory_available.as_ref().map(drop))),
            ),
            Property::Firmware => of_firmware(firsts, self.firmware),
        }
    }
}

/// Whether a card has a list of modes; `None`: no card has one that can be read, and one cannot be read.
fn is_supported<'l>(lists: impl Iterator<Item = Result<(), &'l Unknown>> + Clone) -> Option<String> {
    let is_any = lists.clone().any(|list| list.is_ok());
    let is_known = is_any || lists.clone().all(|list| list.is_err_and(Unknown::is_absent));
    is_known.then(|| is_any.to_string())
}

/// AMD's labeller asks the driver for the firmware of these blocks, which it names otherwise than sysfs does.
const BLOCKS: [(&str, &str); 10] = [
    ("vce", "VCE"),
    ("uvd", "UVD"),
    ("mc", "MC"),
    ("me", "ME"),
    ("pfp", "PFP"),
    ("ce", "CE"),
    ("rlc", "RLC"),
    ("mec", "MEC"),
    ("smc", "SMC"),
    ("sdma", "SDMA0"),
];

/// `beta.amd.com/gpu.firmware.MEC.fw.177`: how many cards have the version. Sysfs has no version of the features, which
/// AMD's labeller has beside it.
fn of_firmware(gpus: &[&Gpu], firmware: &Firmware) -> Labels {
    let mut counts = BTreeMap::<String, usize>::new();
    let of = |gpu: &&Gpu| firmware.get(&gpu.pci?);
    for (name, version) in gpus.iter().filter_map(of).flatten() {
        let block = BLOCKS.iter().find(|(sysfs, _)| sysfs == name).map(|(_, block)| *block);
        let version = version.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
        // The driver has the file also for a block that the chip does not have.
        if let (Some(block), Some(version @ 1..)) = (block, version) {
            *counts.entry(format!("{block}.fw.{version}")).or_default() += 1;
        }
    }
    let named =
        |(name, count): (String, usize)| (format!("beta.amd.com/gpu.firmware.{name}"), count.to_string());
    counts.into_iter().map(named).collect()
}

/// How a card is divided: `cpx_nps4`. The outer `None`: it cannot be read; the inner one: the card has no modes.
fn modes(card: &partitioning::Card) -> Option<Option<String>> {
    match (&card.compute, &card.memory) {
        (Ok(compute), Ok(memory)) => Some(Some(format!("{compute}_{memory}").to_lowercase())),
        (Err(why), _) | (_, Err(why)) if !why.is_absent() => None,
        _ => Some(None),
    }
}

/// The labels as a feature file of NFD's (Node Feature Discovery, "local" feature source). A plain name would get NFD's
/// prefix there, and so the file has none. `expires`: when NFD stops believing the file, as RFC 3339 writes it.
#[must_use]
pub fn feature_file(labels: &Labels, expires: Option<&str>) -> String {
    let expires = expires.map(|time| format!("# +expiry-time={time}\n"));
    let prefixed = labels.iter().filter(|(name, _)| name.contains('/'));
    expires.into_iter().chain(prefixed.map(|(name, value)| format!("{name}={value}\n"))).collect()
}

fn single(property: Property, value: Option<String>) -> Labels {
    value.into_iter().map(|value| (format!("amd.com/gpu.{}", property.name()), value)).collect()
}

/// One value is the label's; several are counted, each by a label of its own. The older names beneath beta.amd.com count
/// also one.
fn counted(property: Property, gpus: &[&Gpu], value: impl Fn(&Gpu) -> Option<String>) -> Labels {
    let mut counts = BTreeMap::<String, usize>::new();
    for value in gpus.iter().filter_map(|gpu| value(gpu)) {
        *counts.entry(value).or_default() += 1;
    }
    let name = property.name();
    let is_one = counts.len() == 1;
    let mut labels = Labels::new();
    for (value, count) in counts {
        labels.insert(format!("beta.amd.com/gpu.{name}.{value}"), count.to_string());
        match is_one {
            true => {
                labels.insert(format!("beta.amd.com/gpu.{name}"), value.clone());
                labels.insert(format!("amd.com/gpu.{name}"), value);
            }
            false => {
                labels.insert(format!("amd.com/gpu.{name}.{value}"), count.to_string());
            }
        }
    }
    labels
}

/// The longest value of a label, and the longest part of its name (apimachinery, `LabelValueMaxLength`).
const LONGEST: usize = 63;

/// A product's name is part of a label's name, too.
const LONGEST_COUNTED_NAME: usize = LONGEST - "gpu.product-name.".len();

/// A text as a label's value: letters, digits, `.`, `_` and `-`, with a letter or digit at both ends. `None`: nothing is
/// left of it.
fn value(text: &str, longest: usize) -> Option<String> {
    let plain = |c: char| match c {
        '(' | ')' => None,
        c if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') => Some(c),
        _ => Some('_'),
    };
    let text: String = text.trim().chars().filter_map(plain).take(longest).collect();
    let text = text.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    (!text.is_empty()).then(|| text.to_owned())
}

/// amdgpu's family of a chip, as AMD's labeller names it: `AMDGPU_FAMILY_…` without the prefix
/// (amdgpu_discovery.c, `amdgpu_discovery_set_ip_blocks`; kfd_device.c, `kgd2kfd_probe`, for the chips of an instruction
/// set). `None` where chips of several families have the instruction set.
fn family(gfx: Gfx) -> Option<&'static str> {
    Some(match gfx.to_string().as_str() {
        "gfx700" => "KV",
        "gfx701" => "CI",
        "gfx801" => "CZ",
        "gfx802" | "gfx803" => "VI",
        "gfx900" | "gfx904" | "gfx906" | "gfx908" | "gfx90a" | "gfx942" | "gfx950" => "AI",
        "gfx902" | "gfx90c" => "RV",
        "gfx1010" | "gfx1011" | "gfx1012" | "gfx1013" | "gfx1030" | "gfx1031" | "gfx1032" | "gfx1034" => "NV",
        "gfx1033" => "VGH",
        "gfx1035" => "YC",
        "gfx1100" | "gfx1101" | "gfx1102" => "GC_11_0_0",
        "gfx1103" => "GC_11_0_1",
        "gfx1150" | "gfx1151" | "gfx1152" | "gfx1153" => "GC_11_5_0",
        "gfx1200" | "gfx1201" | "gfx1250" => "GC_12_0_0",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_the_letters_and_the_length_that_kubernetes_takes() {
        for (text, expected) in [
            ("AMD Instinct MI300X", Some("AMD_Instinct_MI300X")),
            (" Radeon (TM) RX 7900 XTX/7900M\n", Some("Radeon_TM_RX_7900_XTX_7900M")),
            ("6.12.12-rocm6.4", Some("6.12.12-rocm6.4")),
            ("[é]", None),
            ("---", None),
            ("", None),
        ] {
            assert_eq!(value(text, LONGEST).as_deref(), expected, "{text:?}");
        }
        assert_eq!(value(&"x".repeat(70), LONGEST).unwrap().len(), 63);
    }

    /// NFD reads 64 kB of a file: 64 GPUs that differ in everything.
    #[test]
    fn the_feature_file_of_sixty_four_different_gpus_is_small_enough() {
        let long = |n: usize| format!("{n:02}{}", "x".repeat(LONGEST_COUNTED_NAME - 2));
        let gpus: Vec<Gpu> = (0..64)
            .map(|n| Gpu { product_name: Ok(long(n)), ..Gpu::unread(crate::Vendor::Amd, "") })
            .collect();
        let gpus: Vec<&Gpu> = gpus.iter().collect();
        let names = counted(Property::ProductName, &gpus, |gpu| gpu.product_name.clone().ok());
        let one = feature_file(&names, Some("2026-11-30T00:00:00Z")).len();
        // No other property has values of more than twenty letters.
        assert!(one * 4 < 64 << 10, "{one}");
    }
}
