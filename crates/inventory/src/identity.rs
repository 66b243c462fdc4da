use crate::{Gpu, names};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Identifies a GPU: a card, or one partition of a card. The kernel reports less of a suspended GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub uuid: Option<String>,
    /// The driver's name for the product, which it does not tell while the card is suspended.
    pub product: Option<String>,
    /// The PCI id database's name for the chip.
    pub chip: Option<Cow<'static, str>>,
    pub gfx: Option<String>,
    /// Four hexadecimal digits.
    pub device_id: Option<String>,
    /// The compute mode in amdgpu's spelling, such as SPX; `memory_partition` is such as NPS1.
    pub compute_partition: Option<String>,
    pub memory_partition: Option<String>,
}

impl Identity {
    /// The identity of `gpu` as a partition, or of its whole card.
    #[must_use]
    pub fn of(gpu: &Gpu, is_partition: bool) -> Self {
        let own = gpu.uuid.as_ref().ok().copied();
        let uuid = if is_partition { own } else { gpu.card_uuid.or(own) };
        let partition = gpu.partition.as_ref();
        Self {
            uuid: uuid.map(|uuid| uuid.to_string()),
            product: gpu.product_name.clone().ok(),
            chip: names::of_chip(gpu).map(Cow::Borrowed),
            gfx: gpu.gfx.as_ref().ok().map(ToString::to_string),
            device_id: gpu.device_id.map(|id| format!("{id:04x}")),
            compute_partition: partition.and_then(|partition| partition.compute.clone().ok()),
            memory_partition: partition.and_then(|partition| partition.memory.clone().ok()),
        }
    }

    /// The product's name, else the chip's.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.product.as_deref().or(self.chip.as_deref())
    }

    /// Whether no uuid or device id contradicts that both are one GPU. Another card may have taken the slot.
    #[must_use]
    pub fn may_be(&self, other: &Self) -> bool {
        let agree =
            |one: &Option<String>, other: &Option<String>| one.is_none() || other.is_none() || one == other;
        agree(&self.uuid, &other.uuid) && agree(&self.device_id, &other.device_id)
    }

    /// Fills in what was known earlier.
    #[must_use]
    pub fn or(self, earlier: Self) -> Self {
        Self {
            uuid: self.uuid.or(earlier.uuid),
            product: self.product.or(earlier.product),
            chip: self.chip.or(earlier.chip),
            gfx: self.gfx.or(earlier.gfx),
            device_id: self.device_id.or(earlier.device_id),
            compute_partition: self.compute_partition.or(earlier.compute_partition),
            memory_partition: self.memory_partition.or(earlier.memory_partition),
        }
    }
}
