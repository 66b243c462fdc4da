//! A GPU's identity: the labels of its series.
//!
//! The kernel reports less of a suspended GPU. So that its series keep their labels, what an earlier scrape
//! has read is kept for as long as the GPU is there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use inventory::snapshot::GpuId;
use inventory::{Gpu, Identity, PciAddress};

use crate::sample::Label;

/// Where a GPU is. The place stays, whatever else can or cannot be read of the GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pci: Option<PciAddress>,
    /// The render node, only where sysfs does not name the card.
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

/// The labels of a GPU's series, in the order of [`crate::metric::GPU_LABELS`]. What is unknown is left out.
pub(crate) fn labels(identity: &Identity, id: GpuId) -> Vec<Label> {
    known([
        ("gpu", id.index.map(|index| index.to_string())),
        ("uuid", identity.uuid.clone()),
        ("pci", id.pci.map(|address| address.to_string())),
        ("model", identity.model().map(str::to_owned)),
        ("gfx", identity.gfx.clone()),
        ("partition", id.partition.map(|id| id.to_string())),
    ])
}

/// The further labels of `rocm_gpu_info`. `vbios`: of a card. `driver`: the version of the kernel module.
pub(crate) fn info_labels(
    identity: &Identity,
    vbios: Option<&String>,
    driver: Option<&String>,
) -> Vec<Label> {
    known([
        ("device_id", identity.device_id.clone()),
        ("vbios", vbios.cloned()),
        ("driver_version", driver.cloned()),
        ("compute_partition", identity.compute_partition.clone()),
        ("memory_partition", identity.memory_partition.clone()),
    ])
}

fn known<const N: usize>(labels: [(&'static str, Option<String>); N]) -> Vec<Label> {
    labels.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// A GPU's identity, and a card's version of its VBIOS.
pub(crate) type Known = (Identity, Option<String>);

/// The identities of the GPUs that are there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identities {
    earlier: BTreeMap<Place, Known>,
    now: BTreeMap<Place, Known>,
}

impl Identities {
    /// Fills the gaps in a GPU's identity from earlier scrapes.
    pub(crate) fn complete(&mut self, place: Place, (identity, vbios): Known) -> Known {
        let kept = self.earlier.get(&place).filter(|(kept, _)| kept.may_be(&identity)).cloned();
        let (kept, kept_vbios) = kept.unwrap_or_default();
        let known = (identity.or(kept), vbios.or(kept_vbios));
        self.now.insert(place, known.clone());
        known
    }

    /// Ends a scrape: forgets the GPUs that it did not see.
    pub(crate) fn end_scrape(&mut self) {
        self.earlier = std::mem::take(&mut self.now);
    }
}
