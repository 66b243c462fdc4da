//! One look at the machine's cards and at who uses them.

use std::collections::BTreeSet;

use inventory::partitioning::Card;
use inventory::{Inventory, PciAddress, Sriov, Vendor};
use packages::driver::{Hindrances, kmm};
use root::Root;

use super::{Holder, holders};
use crate::lease::{self, Held};

/// How many minors DRM gives out to cards. Linux 6.12 has more, 6.1 has not (drm_drv.c, `drm_minor_alloc`).
const MINORS: usize = 64;

/// The cards with their modes, and the processes on them.
#[derive(Debug)]
pub struct Look {
    pub inventory: Inventory,
    pub cards: Vec<Card>,
    /// The compute processes, or why they are not known.
    pub holders: Result<Vec<Holder>, String>,
    /// Containers that were given the cards' devices, whether they compute now or not.
    pub leases: Vec<(PciAddress, String)>,
    /// Whether KMM loads this node's driver, which is then not rocworker's to load again.
    pub is_loaded_by_kmm: bool,
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
        let is_loaded_by_kmm = kmm::loads(root, &inventory.amdgpu, &Hindrances::read(root));
        let leases = leases(root);
        Self { inventory, cards, holders, leases, is_loaded_by_kmm, minors }
    }

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
        if self.minors + 1 < MINORS {
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

/// Where the list cannot be read, `rocworker lease list` says why.
fn leases(root: &Root) -> Vec<(PciAddress, String)> {
    let (held, _) = lease::list(root).unwrap_or_default();
    let held = held.into_iter().filter(Held::is_taken);
    held.filter_map(|held| Some((held.gpu?.pci?, held.id?))).collect()
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
