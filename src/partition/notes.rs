//! What the modes of cards do not say by themselves, in sentences.

use std::collections::BTreeSet;

use inventory::partitioning::Card;
use inventory::{Sriov, Vendor};

use super::Look;
use super::look::MINORS;

impl Look {
    /// Sentences on what the cards' modes do not say by themselves.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let missing = |card: &Card| {
            let (what, remedy) = self.missing(card)?;
            Some(format!("{} {what}: {remedy}", card.pci))
        };
        let shared = |card: &Card| Some(format!("{}: {}", card.pci, shared(card)?));
        let of_cards = self.cards.iter().flat_map(|card| [missing(card), role(card), shared(card)]);
        let guest = self.cards.iter().any(|card| !card.is_writable && card.compute.is_ok());
        let guest = guest.then(|| {
            "the driver lets no mode of a virtual function be written: its host sets the modes, which may differ from those \
             that a guest sees"
                .to_owned()
        });
        of_cards.flatten().chain(guest).collect()
    }

    /// That a card has fewer devices than its mode gives, and why, and what to do.
    #[must_use]
    pub fn missing(&self, card: &Card) -> Option<(String, String)> {
        let expected = usize::try_from(card.expected_devices().ok()?).ok()?;
        let seen = card.devices.len();
        if seen >= expected || seen == 0 {
            return None;
        }
        let has = format!("has {seen} of {expected} devices");
        if !self.lacks_minors {
            let remedy = "KFD does not show the others: journalctl -k --grep 'kfd|amdgpu' says why";
            return Some((has, remedy.to_owned()));
        }
        let others = self.inventory.gpus.iter().filter(|gpu| gpu.vendor != Vendor::Amd);
        let others: BTreeSet<&str> = others.filter_map(|gpu| gpu.driver.as_deref()).collect();
        let drivers = match others.into_iter().collect::<Vec<_>>() {
            none if none.is_empty() => "another display driver (on servers mostly ast)".to_owned(),
            drivers => drivers.join(", "),
        };
        let why = format!("{has}: the kernel's DRM has {MINORS} minors for cards, and {drivers} takes one");
        Some((why, "unload that driver and reload amdgpu, or run Linux 6.12 or later".to_owned()))
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
#[must_use]
pub fn shared(card: &Card) -> Option<&'static str> {
    card.shares_domains.then_some(
        "compute_partition_mem_alloc_mode is ALL, so that each device may take the memory of its whole domain",
    )
}
