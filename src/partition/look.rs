//! One look at the machine's cards and at who uses them.

use std::collections::BTreeSet;

use inventory::partitioning::Card;
use inventory::{Inventory, Sriov, Vendor};
use root::Root;

use super::{Holder, holders};

/// How many minors DRM gives out to cards. Linux 6.12 has more, 6.1 has not (drm_drv.c, `drm_minor_alloc`).
const MINORS: usize = 64;

/// The cards with their modes, and the processes on them.
#[derive(Debug)]
pub struct Look {
    pub inventory: Inventory,
    pub cards: Vec<Card>,
    /// The compute processes, or why they are not known.
    pub holders: Result<Vec<Holder>, String>,
    /// How many primary nodes (`cardN`) DRM has.
    minors: usize,
}

impl Look {
    #[must_use]
    pub fn at(root: &Root) -> Self {
        let inventory = amdgpu::read(root);
        let cards = amdgpu::partitioning(root, &inventory);
        let holders = holders(root, &inventory);
        let names = root.list("/sys/class/drm").unwrap_or_default();
        let number = |name: &str| name.strip_prefix("card").map(|it| it.parse::<u32>());
        let minors = names.iter().filter(|it| matches!(it.to_str().and_then(number), Some(Ok(_)))).count();
        Self { inventory, cards, holders, minors }
    }

    /// Sentences on what the cards' modes do not say by themselves.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let of_cards = self.cards.iter().flat_map(|card| [self.missing(card), role(card), shared(card)]);
        let guest = self.cards.iter().any(|card| !card.is_writable && card.compute.is_ok());
        let guest = guest.then(|| {
            "the driver lets no mode of a virtual function be written: its host sets the modes, which may differ from those \
             that a guest sees"
                .to_owned()
        });
        of_cards.flatten().chain(guest).collect()
    }

    /// Why a card has fewer devices than its mode gives.
    fn missing(&self, card: &Card) -> Option<String> {
        let expected = usize::try_from(card.expected_devices().ok()?).ok()?;
        let seen = card.devices.len();
        if seen >= expected || seen == 0 {
            return None;
        }
        let others = self.inventory.gpus.iter().filter(|gpu| gpu.vendor != Vendor::Amd);
        let others: BTreeSet<&str> = others.filter_map(|gpu| gpu.driver.as_deref()).collect();
        let why = if self.minors + 1 >= MINORS {
            let drivers = match others.into_iter().collect::<Vec<_>>() {
                none if none.is_empty() => "another display driver (on servers mostly ast)".to_owned(),
                drivers => drivers.join(", "),
            };
            format!(
                "the kernel's DRM has {MINORS} minors for cards, and {drivers} takes one: unload that driver and reload \
                 amdgpu, or run Linux 6.12 or later"
            )
        } else {
            "KFD does not show the others: see rocworker doctor".to_owned()
        };
        Some(format!("{} has {seen} of {expected} devices: {why}", card.pci))
    }
}

/// What the card is in SR-IOV.
fn role(card: &Card) -> Option<String> {
    match card.sriov? {
        Sriov::Physical { vfs } => {
            Some(format!("{} is a physical function with {vfs} virtual functions", card.pci))
        }
        Sriov::Virtual { of: Some(of) } => Some(format!("{} is a virtual function of {of}", card.pci)),
        Sriov::Virtual { of: None } => Some(format!("{} is a virtual function", card.pci)),
    }
}

/// That memory is not divided among the devices of a domain.
fn shared(card: &Card) -> Option<String> {
    card.shares_domains.then(|| {
        format!(
            "{}: compute_partition_mem_alloc_mode is ALL, so that each device may take the memory of its whole domain",
            card.pci
        )
    })
}
