//! What advice needs of a machine: its AMD cards, the ports above them, and how a person drains and resets them.

use std::path::Path;

use host::hostname;
use host::unit::{CONCOURSE_WORKER, Unit};
use inventory::{Gpu, PciAddress};
use kernel_log::knowledge::Message;
use root::Root;
use root::patient::{DEADLINE, PATIENCE, Patient};

/// kubelet's own folder (`--root-dir`), which any user may see.
const KUBELET: &str = "/var/lib/kubelet";

/// The folder of amdgpu's messages in the kernel's tree.
const AMDGPU: &str = "drivers/gpu/drm/amd/";

/// The folders into which AMD's packages and archives put programs.
const PROGRAMS: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/opt/rocm/bin"];

/// A machine's AMD cards, and the programs around them.
#[derive(Debug, Clone, Default)]
pub struct Here {
    pub cards: Vec<Card>,
    /// Functions of the PCI bus that are no AMD card.
    others: Vec<PciAddress>,
    /// The machine is not the one that this program runs on.
    pub is_beneath_root: bool,
    /// A Concourse worker runs here.
    pub is_worker: bool,
    /// A kubelet runs here.
    pub is_node: bool,
    /// What the machine calls itself: a node's and a worker's name, unless somebody gave them another.
    pub name: Option<String>,
    pub has_amd_smi: bool,
    pub has_rocm_smi: bool,
    /// Why nothing is known of the cards: their driver does not answer.
    pub unknown: Option<String>,
}

/// A card of [`inventory::Inventory::cards`] whose place and indexes are known, and where it is on the bus.
#[derive(Debug, Clone)]
pub struct Card {
    pub address: PciAddress,
    /// The card's GPUs, at least one, in the order of their indexes.
    pub gpus: Vec<Gpu>,
    /// The ports and bridges between it and its root complex.
    above: Vec<PciAddress>,
}

impl Card {
    /// The XGMI hive, where KFD names one.
    #[must_use]
    pub fn hive(&self) -> Option<u64> {
        self.gpus.iter().find_map(|gpu| gpu.hive_id)
    }

    /// PCI's vendor and device.
    fn ids(&self) -> Option<(u16, u16)> {
        self.gpus.iter().find_map(|gpu| gpu.vendor_id.zip(gpu.device_id))
    }

    fn is_in_kfd(&self) -> bool {
        self.gpus.iter().any(|gpu| gpu.kfd_node.is_some())
    }

    pub fn indexes(&self) -> impl Iterator<Item = u32> {
        self.gpus.iter().filter_map(|gpu| gpu.index)
    }
}

/// What the device at an address in a log is on this machine.
#[derive(Debug)]
pub enum Place<'h> {
    Card(&'h Card),
    /// A port or bridge, with the cards beneath it.
    Above(Vec<&'h Card>),
    /// A device that is no AMD GPU.
    Other,
    Absent,
    /// The machine could not be read.
    Unknown,
}

impl Here {
    /// Reads the machine beneath `root`. A card whose driver hangs does not hang its explanation.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        let has = |name: &str| PROGRAMS.iter().any(|folder| root.exists(Path::new(folder).join(name)));
        let around = Self {
            is_beneath_root: !root.is_host(),
            is_worker: Unit::read(root, CONCOURSE_WORKER, None).is_ok_and(|unit| unit.is_some()),
            is_node: root.exists(KUBELET),
            name: hostname(root),
            has_amd_smi: has("amd-smi"),
            has_rocm_smi: has("rocm-smi"),
            ..Self::default()
        };
        let mut patient = Patient::new(root.place(), PATIENCE, DEADLINE);
        match patient.run(|root| (cards(root), addresses(root))) {
            Ok((cards, mut others)) => {
                others.retain(|address| cards.iter().all(|card| card.address != *address));
                Self { cards, others, ..around }
            }
            Err(error) => Self { unknown: Some(error.to_string()), ..around },
        }
    }

    #[must_use]
    pub fn place(&self, address: PciAddress) -> Place<'_> {
        if let Some(card) = self.cards.iter().find(|card| card.address == address) {
            return Place::Card(card);
        }
        let beneath: Vec<&Card> = self.cards.iter().filter(|card| card.above.contains(&address)).collect();
        match () {
            () if self.unknown.is_some() => Place::Unknown,
            () if !beneath.is_empty() => Place::Above(beneath),
            () if self.others.contains(&address) => Place::Other,
            () => Place::Absent,
        }
    }

    /// The cards that a reset of this one resets: all of its hive (`amdgpu_device_gpu_recover` of amdgpu_device.c).
    #[must_use]
    pub fn reset_with(&self, card: &Card) -> Vec<&Card> {
        let is_of_hive = |other: &&Card| card.hive().is_some() && other.hive() == card.hive();
        self.cards.iter().filter(|other| other.address == card.address || is_of_hive(other)).collect()
    }

    /// The card that one of this machine's messages is about, although it names none: the machine has one AMD card, and
    /// amdgpu alone says this. `ids`: what a line of KFD's names in place of an address.
    #[must_use]
    pub fn card_of(&self, message: &Message, ids: Option<(u16, u16)>) -> Option<&Card> {
        let may_be_it = |card: &&Card| ids.is_none() || (card.ids() == ids && !card.is_in_kfd());
        let mut cards = self.cards.iter().filter(may_be_it);
        cards.next().filter(|_| cards.next().is_none() && message.source.starts_with(AMDGPU))
    }

    /// Which cards a line of KFD's may be about that names these ids, a sentence.
    #[must_use]
    pub fn cards_with(&self, ids: (u16, u16)) -> Option<String> {
        let named = format!("{:04x}:{:04x}", ids.0, ids.1);
        let with = |is_in_kfd| {
            let cards = self
                .cards
                .iter()
                .filter(move |card| (card.ids(), card.is_in_kfd()) == (Some(ids), is_in_kfd));
            cards.map(|card| card.address.to_string()).collect::<Vec<_>>().join(", ")
        };
        let (inside, outside) = (with(true), with(false));
        match (self.unknown.is_some(), &*inside, &*outside) {
            (true, ..) => None,
            (_, "", "") => Some(format!(
                "This machine has no card {named}: the log is another machine's, or the card has gone."
            )),
            (_, inside, "") => Some(format!("KFD has every card {named} of this machine now: {inside}.")),
            (_, "", outside) => Some(format!("Of this machine's cards {named} KFD has none: {outside}.")),
            (_, inside, outside) => Some(format!(
                "Of this machine's cards {named} KFD leaves out {outside}, and has {inside}: compare the slots."
            )),
        }
    }
}

fn cards(root: &Root) -> Vec<Card> {
    let inventory = amdgpu::read(root);
    let cards = inventory.cards().into_iter().filter_map(|card| {
        let (address, _) = card.first.pci.zip(card.first.index)?;
        let gpus = card.gpus.into_iter().cloned().collect();
        Some(Card { address, gpus, above: amdgpu::bridges(root, address) })
    });
    cards.collect()
}

fn addresses(root: &Root) -> Vec<PciAddress> {
    let names = root.list("/sys/bus/pci/devices").unwrap_or_default();
    names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect()
}
