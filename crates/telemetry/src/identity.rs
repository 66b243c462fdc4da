//! Who a GPU is: the labels of its series.
//!
//! The kernel tells less of a GPU that is suspended. Its series stay the same series: what an earlier scrape has read is
//! kept for as long as the GPU is there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use amdgpu::{Address, Gpu, names};

use crate::sample::Label;

/// Where a GPU is: what stays the same while everything that is read of it may come and go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pci: Option<Address>,
    /// Only where sysfs does not tell the card.
    render: Option<PathBuf>,
    partition: Option<u32>,
}

impl Place {
    /// `partition`: its id, for the series of a partition.
    pub(crate) fn of(gpu: &Gpu, partition: Option<u32>) -> Self {
        let render = || gpu.render.as_ref().map(|node| node.path.clone());
        Self { pci: gpu.pci, render: if gpu.pci.is_none() { render() } else { None }, partition }
    }
}

/// What is known of a GPU now, or was at an earlier scrape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) uuid: Option<String>,
    /// The driver's name for the product, which it does not tell while the card is suspended.
    pub(crate) product: Option<String>,
    /// The PCI id database's name for the chip.
    pub(crate) chip: Option<&'static str>,
    pub(crate) gfx: Option<String>,
    pub(crate) device_id: Option<String>,
    pub(crate) vbios: Option<String>,
    pub(crate) compute_partition: Option<String>,
    pub(crate) memory_partition: Option<String>,
    pub(crate) is_apu: Option<bool>,
}

impl Identity {
    /// What [`Gpu`] says of the entry: of its card, or of it as a partition.
    pub(crate) fn of(gpu: &Gpu, is_partition: bool) -> Self {
        let own = gpu.uuid.as_ref().ok().copied();
        let uuid = if is_partition { own } else { gpu.card_uuid.or(own) };
        let partition = gpu.partition.as_ref();
        Self {
            uuid: uuid.map(|uuid| uuid.to_string()),
            product: gpu.product_name.clone().ok(),
            chip: names::of_chip(gpu),
            gfx: gpu.gfx.as_ref().ok().map(ToString::to_string),
            device_id: gpu.device_id.map(|id| format!("{id:04x}")),
            vbios: None,
            compute_partition: partition.and_then(|partition| partition.compute.clone().ok()),
            memory_partition: partition.and_then(|partition| partition.memory.clone().ok()),
            is_apu: None,
        }
    }

    /// Whether both can be of one GPU; another card may have taken the place.
    fn may_be(&self, other: &Self) -> bool {
        let agree =
            |one: &Option<String>, other: &Option<String>| one.is_none() || other.is_none() || one == other;
        agree(&self.uuid, &other.uuid) && agree(&self.device_id, &other.device_id)
    }

    fn or(self, kept: Self) -> Self {
        Self {
            uuid: self.uuid.or(kept.uuid),
            product: self.product.or(kept.product),
            chip: self.chip.or(kept.chip),
            gfx: self.gfx.or(kept.gfx),
            device_id: self.device_id.or(kept.device_id),
            vbios: self.vbios.or(kept.vbios),
            compute_partition: self.compute_partition.or(kept.compute_partition),
            memory_partition: self.memory_partition.or(kept.memory_partition),
            is_apu: self.is_apu.or(kept.is_apu),
        }
    }

    /// The labels of the GPU's series, in the order of [`crate::metric::GPU_LABELS`]. What is unknown is left out.
    pub(crate) fn labels(&self, gpu: &Gpu, partition: Option<u32>) -> Vec<Label> {
        let labels = [
            ("gpu", gpu.index.map(|index| index.to_string())),
            ("uuid", self.uuid.clone()),
            ("pci", gpu.pci.map(|address| address.to_string())),
            ("model", self.product.clone().or_else(|| self.chip.map(str::to_owned))),
            ("gfx", self.gfx.clone()),
            ("partition", partition.map(|id| id.to_string())),
        ];
        known(labels)
    }

    /// The further labels of `rocm_gpu_info`. `driver`: the version of the kernel module.
    pub(crate) fn info_labels(&self, driver: Option<String>) -> Vec<Label> {
        known([
            ("device_id", self.device_id.clone()),
            ("vbios", self.vbios.clone()),
            ("driver_version", driver),
            ("compute_partition", self.compute_partition.clone()),
            ("memory_partition", self.memory_partition.clone()),
        ])
    }
}

fn known<const N: usize>(labels: [(&'static str, Option<String>); N]) -> Vec<Label> {
    labels.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The identities of the GPUs that are there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identities {
    earlier: BTreeMap<Place, Identity>,
    now: BTreeMap<Place, Identity>,
}

impl Identities {
    /// What is known of a GPU, with what an earlier scrape knew.
    pub(crate) fn complete(&mut self, place: Place, seen: Identity) -> Identity {
        let kept = self.earlier.get(&place).filter(|kept| kept.may_be(&seen)).cloned();
        let identity = seen.or(kept.unwrap_or_default());
        self.now.insert(place, identity.clone());
        identity
    }

    /// Ends a scrape: forgets the GPUs that it did not see.
    pub(crate) fn end_scrape(&mut self) {
        self.earlier = std::mem::take(&mut self.now);
    }
}
