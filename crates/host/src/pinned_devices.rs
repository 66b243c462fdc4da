//! What a word of `gpu-device-ids` meant when it was first applied: a GPU, by what stays its own.

use std::collections::BTreeMap;
use std::fmt;

use inventory::Gpu;
use serde::{Deserialize, Serialize};

/// What indexes and render names of `gpu-device-ids` meant when they were first applied.
pub type PinnedDevices = BTreeMap<String, PinnedDevice>;

/// A GPU by what stays its own: its uuid, else its card's PCI address and its place among the card's partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedDevice {
    pub pci: String,
    /// `None`: the GPU has none of its own.
    pub uuid: Option<String>,
    pub partition: Option<u32>,
    /// Whether the GPU was unusable when it was pinned, so that its driver may not have shown all of it yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unready: bool,
}

impl PinnedDevice {
    /// `None` of a GPU whose card is not known.
    pub fn of(gpu: &Gpu) -> Option<Self> {
        Some(Self {
            pci: gpu.pci?.to_string(),
            uuid: gpu.uuid.as_ref().ok().map(ToString::to_string),
            partition: gpu.partition.as_ref().map(|partition| partition.id),
            unready: !gpu.usable(),
        })
    }

    /// Whether `gpu` is the pinned GPU: a card keeps its pin when it moves to another slot, and a new card in the old
    /// slot does not get it. Without its driver a GPU reports neither uuid nor partition: then the slot decides, and
    /// what the driver reports later belongs to the pinned GPU.
    #[must_use]
    pub fn is(&self, gpu: &Gpu) -> bool {
        let Some(now) = Self::of(gpu) else { return false };
        match (&self.uuid, &now.uuid) {
            (Some(pinned), Some(its)) => pinned == its,
            (None, None) => self.is_at(&now),
            (Some(_), None) => now.unready && self.is_at(&now),
            (None, Some(_)) => self.unready && self.is_at(&now),
        }
    }

    fn is_at(&self, now: &Self) -> bool {
        let is_part = match (self.partition, now.partition) {
            (Some(_), None) if now.unready => true,
            // The PCI function, which is all that is there without a driver, is a card's first partition.
            (None, Some(first)) if self.unready => first == 0,
            (pinned, its) => pinned == its,
        };
        self.pci == now.pci && is_part
    }

    /// This pin with all that `gpu`, the inventory's entry of the GPU, reports once it can be used.
    pub fn completed(self, gpu: &Gpu) -> Self {
        Self::of(gpu).filter(|now| !now.unready).unwrap_or(self)
    }

    pub fn gone(&self, word: &str) -> String {
        format!(
            "gpu-device-ids names {word}, which was {self} when it was first applied, and that GPU is not there any \
             more: put it back, or name another GPU by its PCI address or uuid (rocworker detect)"
        )
    }
}

impl fmt::Display for PinnedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pci)?;
        if let Some(partition) = self.partition {
            write!(f, " partition {partition}")?;
        }
        self.uuid.as_ref().map_or(Ok(()), |uuid| write!(f, " ({uuid})"))
    }
}
