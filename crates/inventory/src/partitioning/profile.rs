//! What a profile asks of each card, and why it cannot be.

use std::fmt;

use super::{Card, Compute, Memory, Rules};
use crate::{PciAddress, Reading, Sriov, Unknown};

/// One entry of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub cards: Selector,
    /// The modes that the cards get; `None`: the cards stay as they are.
    pub modes: Option<Modes>,
    /// How many cards the selector must mean.
    pub count: Option<u32>,
}

/// The modes that a card is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    pub compute: Compute,
    /// `None`: the memory mode stays.
    pub memory: Option<Memory>,
}

/// The cards that an entry means. An address counts before a model, and a model before all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selector {
    All,
    /// AMD's name of the chip, `MI300X`, in any case.
    Model(String),
    Card(PciAddress),
}

/// The modes of one card, now and by a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aim {
    pub pci: PciAddress,
    pub compute: (Compute, Compute),
    /// The memory mode now and by the profile. `None` where neither the driver nor the profile names one.
    pub memory: Option<(Memory, Memory)>,
}

/// Why a profile cannot be set on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    NoCards,
    /// A selector means no card.
    NoCard(Selector),
    /// Two entries have one selector.
    Twice(Selector),
    Count {
        of: Selector,
        wanted: u32,
        found: usize,
    },
    /// The driver lets nobody write the modes, as with a virtual function: only the host sets them.
    Virtual(PciAddress),
    /// The memory mode of an APU is the firmware's.
    Apu(PciAddress),
    /// A value that the decision needs is not known.
    Unread {
        pci: PciAddress,
        why: Unknown,
    },
    /// The card does not have the compute mode.
    Compute {
        pci: PciAddress,
        mode: Compute,
        has: Vec<Compute>,
    },
    /// The card does not have the memory mode.
    Memory {
        pci: PciAddress,
        mode: Memory,
        has: Vec<Memory>,
    },
    /// The kernel does not allow both modes together.
    Pair {
        pci: PciAddress,
        compute: Compute,
        memory: Memory,
        fit: Vec<Memory>,
    },
    /// Cards of one hive would have two memory modes.
    Hive {
        one: (PciAddress, Memory),
        other: (PciAddress, Memory),
        is_skipped: bool,
    },
}

impl Selector {
    /// Reads `all`, a PCI address, or a model.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match PciAddress::parse(text) {
            Some(address) => Self::Card(address),
            None if text == "all" => Self::All,
            None => Self::Model(text.to_owned()),
        }
    }

    fn means(&self, card: &Card) -> bool {
        match self {
            Self::All => true,
            Self::Card(address) => card.pci == *address,
            Self::Model(model) => card.is_model(model),
        }
    }
}

/// What a profile asks of each card that it takes, in the order of the cards.
///
/// # Errors
/// Every reason why the profile cannot be set on these cards.
pub fn aims(profile: &[Entry], cards: &[Card]) -> Result<Vec<Aim>, Vec<Refusal>> {
    if cards.is_empty() {
        return Err(vec![Refusal::NoCards]);
    }
    let mut refusals = Vec::new();
    for (at, entry) in profile.iter().enumerate() {
        let name = entry.cards.to_string();
        if profile.iter().take(at).any(|other| other.cards.to_string().eq_ignore_ascii_case(&name)) {
            refusals.push(Refusal::Twice(entry.cards.clone()));
        }
        let found = cards.iter().filter(|card| entry.cards.means(card)).count();
        match entry.count {
            Some(wanted) if usize::try_from(wanted) != Ok(found) => {
                refusals.push(Refusal::Count { of: entry.cards.clone(), wanted, found });
            }
            None if found == 0 && entry.cards != Selector::All => {
                refusals.push(Refusal::NoCard(entry.cards.clone()));
            }
            _ => {}
        }
    }
    let mut aims = Vec::new();
    for card in cards {
        let entries = profile.iter().filter(|entry| entry.cards.means(card));
        let entry = entries.max_by(|one, other| one.cards.cmp(&other.cards));
        if let Some(modes) = entry.and_then(|entry| entry.modes) {
            match aim(card, modes) {
                Ok(aim) => aims.push(aim),
                Err(refusal) => refusals.push(refusal),
            }
        }
    }
    refusals.extend(split_hives(&aims, cards));
    if refusals.is_empty() { Ok(aims) } else { Err(refusals) }
}

/// What is asked of one card, if it can be.
fn aim(card: &Card, Modes { compute, memory }: Modes) -> Result<Aim, Refusal> {
    let pci = card.pci;
    let known = |why: Unknown| Refusal::Unread { pci, why };
    let rules = card.rules().map_err(known)?;
    let now = card.compute.clone().map_err(known)?;
    if matches!(card.sriov, Some(Sriov::Virtual { .. })) || !card.is_writable {
        return Err(Refusal::Virtual(pci));
    }
    // Without a list the kernel's rules decide, but a list that cannot be read may say less.
    let mut lists = [&card.compute_supported, &card.compute_available].into_iter();
    if let Some(Err(why)) = lists.find(|list| list.as_ref().is_err_and(|why| !why.is_absent())) {
        return Err(known(why.clone()));
    }
    let has = compute_modes(card, rules);
    if !has.contains(&compute) {
        return Err(Refusal::Compute { pci, mode: compute, has });
    }
    let present = card.memory.clone();
    let memory = match (present, memory) {
        (Ok(now), wanted) => Some((now, wanted.unwrap_or(now))),
        // Without a memory file the card has one memory mode, NPS1.
        (Err(why), None) if why.is_absent() => None,
        (Err(why), _) => return Err(known(why)),
    };
    if let Some((now, wanted)) = memory {
        if now != wanted {
            check_memory(card, wanted)?;
        }
        if !rules.allow(compute, wanted) {
            let fit = rules.memory_modes(compute).to_vec();
            return Err(Refusal::Pair { pci, compute, memory: wanted, fit });
        }
        // Of the present memory mode the driver itself says which compute modes it takes.
        if let (true, Ok(has)) = (now == wanted, &card.compute_available)
            && !has.contains(&compute)
        {
            return Err(Refusal::Compute { pci, mode: compute, has: has.clone() });
        }
    }
    Ok(Aim { pci, compute: (now, compute), memory })
}

fn compute_modes(card: &Card, rules: Rules) -> Vec<Compute> {
    card.compute_supported.clone().unwrap_or_else(|_| rules.compute_modes().to_vec())
}

/// Whether the driver takes another memory mode for the card.
fn check_memory(card: &Card, wanted: Memory) -> Result<(), Refusal> {
    let pci = card.pci;
    if card.chip.is_some_and(|chip| chip.is_apu) {
        return Err(Refusal::Apu(pci));
    }
    let has: Reading<Vec<Memory>> = card.memory_available.clone();
    let has = has.or_else(|why| match (why.is_absent(), &card.memory) {
        // A card with one memory mode has no list.
        (true, Ok(now)) => Ok(vec![*now]),
        _ => Err(Refusal::Unread { pci, why }),
    })?;
    if has.contains(&wanted) { Ok(()) } else { Err(Refusal::Memory { pci, mode: wanted, has }) }
}

/// Cards of one hive that would be in two memory modes. The driver keeps one request for the whole hive (amdgpu_gmc.c,
/// `current_memory_partition_store`), so that a card that the profile skips changes too.
fn split_hives(aims: &[Aim], cards: &[Card]) -> Vec<Refusal> {
    let wanted = |card: &Card| {
        let aim = aims.iter().find(|aim| aim.pci == card.pci);
        let memory = aim.map_or_else(|| card.memory.clone().ok(), |aim| Some(aim.memory?.1));
        Some((card.pci, memory?))
    };
    let is_changed = |hive: u64| {
        let of = |aim: &&Aim| cards.iter().any(|card| card.pci == aim.pci && card.hive_id == Some(hive));
        aims.iter().filter(of).any(|aim| aim.memory.is_some_and(|(now, wanted)| now != wanted))
    };
    let mut hives: Vec<u64> = cards.iter().filter_map(|card| card.hive_id).collect();
    hives.sort_unstable();
    hives.dedup();
    let mut refusals = Vec::new();
    for hive in hives.into_iter().filter(|hive| is_changed(*hive)) {
        let mut of = cards.iter().filter(|card| card.hive_id == Some(hive)).filter_map(wanted);
        let Some(one) = of.next() else { continue };
        if let Some(other) = of.find(|other| other.1 != one.1) {
            let is_aimed = |pci| aims.iter().any(|aim| aim.pci == pci);
            let is_skipped = !is_aimed(one.0) || !is_aimed(other.0);
            refusals.push(Refusal::Hive { one, other, is_skipped });
        }
    }
    refusals
}

impl Card {
    /// Whether this is the chip's name: `MI300X`, in any case.
    fn is_model(&self, model: &str) -> bool {
        let is_chip = self.chip.is_some_and(|chip| chip.name.eq_ignore_ascii_case(model));
        is_chip || self.name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(model))
    }
}

fn listed<M: fmt::Display>(modes: &[M]) -> String {
    modes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Model(model) => f.write_str(model),
            Self::Card(address) => address.fmt(f),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCards => f.write_str("amdgpu drives no card of this machine"),
            Self::NoCard(of) => write!(f, "{of} is no card of this machine"),
            Self::Twice(of) => write!(f, "two entries are for {of}: keep one"),
            Self::Count { of, wanted, found } => {
                write!(f, "{of} means {found} cards of this machine, and the profile's count is {wanted}")
            }
            Self::Virtual(pci) => {
                write!(
                    f,
                    "{pci}: the driver lets no mode be written, as with virtual functions, whose host sets their modes"
                )
            }
            Self::Apu(pci) => write!(f, "{pci} is an APU: its firmware sets the memory mode"),
            Self::Unread { pci, why } => {
                write!(f, "{pci} stays as it is, because it is not fully read: {why}")
            }
            Self::Compute { pci, mode, has } => {
                write!(f, "{pci} does not have {mode}: its modes are {}", listed(has))
            }
            Self::Memory { pci, mode, has } => {
                write!(f, "{pci} does not have {mode}: its memory modes are {}", listed(has))
            }
            Self::Pair { pci, compute, memory, fit } => write!(
                f,
                "{pci}: the kernel does not allow {compute} with {memory}; {compute} goes with {}",
                listed(fit)
            ),
            Self::Hive { one: (pci, mode), other: (other, others), is_skipped } => {
                let skipped = if *is_skipped { ", also of a card that the profile skips" } else { "" };
                write!(
                    f,
                    "{pci} would have {mode} and {other} {others}: XGMI links both, and a hive has one memory mode{skipped}"
                )
            }
        }
    }
}
