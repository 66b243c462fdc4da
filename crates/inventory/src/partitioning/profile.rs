//! What a profile asks of each card, and why it cannot be.

use std::fmt;

use serde::{Deserialize, Serialize};

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    All,
    /// AMD's name of the chip, `MI300X`, in any case.
    Model(String),
    Card(PciAddress),
}

/// The modes of one card, now and by a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aim {
    pub pci: PciAddress,
    pub compute: Change<Compute>,
    /// `None` where neither the driver nor the profile names a memory mode.
    pub memory: Option<Change<Memory>>,
}

/// A mode now, and the mode by the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change<M> {
    pub from: M,
    pub to: M,
}

/// Why a profile cannot be set on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    NoCards,
    /// A selector means no card. `models`: those of the machine.
    NoCard {
        of: Selector,
        models: Vec<String>,
    },
    /// Two entries mean a card, and neither counts before the other.
    Twice {
        pci: PciAddress,
        cards: Selector,
    },
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

    /// An entry counts before those that mean more cards.
    fn breadth(&self) -> u8 {
        match self {
            Self::Card(_) => 0,
            Self::Model(_) => 1,
            Self::All => 2,
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
    for entry in profile {
        let found = cards.iter().filter(|card| entry.cards.means(card)).count();
        match entry.count {
            Some(wanted) if usize::try_from(wanted) != Ok(found) => {
                refusals.push(Refusal::Count { of: entry.cards.clone(), wanted, found });
            }
            None if found == 0 && entry.cards != Selector::All => {
                let mut models: Vec<String> = cards.iter().filter_map(Card::model).collect();
                models.sort_unstable();
                models.dedup();
                refusals.push(Refusal::NoCard { of: entry.cards.clone(), models });
            }
            _ => {}
        }
    }
    let mut aims = Vec::new();
    for card in cards {
        let meant = |entry: &&Entry| entry.cards.means(card);
        let narrowest = profile.iter().filter(meant).map(|entry| entry.cards.breadth()).min();
        let mut entries = profile.iter().filter(meant).filter(|it| Some(it.cards.breadth()) == narrowest);
        let (entry, other) = (entries.next(), entries.next());
        if let Some(other) = other {
            let is_known =
                |known: &Refusal| matches!(known, Refusal::Twice { cards, .. } if *cards == other.cards);
            if !refusals.iter().any(is_known) {
                refusals.push(Refusal::Twice { pci: card.pci, cards: other.cards.clone() });
            }
            continue;
        }
        if let Some(modes) = entry.and_then(|entry| entry.modes) {
            match aim(card, modes) {
                Ok(aim) => aims.push(aim),
                Err(refusal) => refusals.push(refusal),
            }
        }
    }
    refusals.extend(split_hives(&aims, cards));
    refusals.extend(unread_beside(&aims, cards));
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
        (Ok(from), wanted) => Some(Change { from, to: wanted.unwrap_or(from) }),
        // Without a memory file the card has one memory mode, NPS1.
        (Err(why), None) if why.is_absent() => None,
        (Err(why), _) => return Err(known(why)),
    };
    if let Some(Change { from, to }) = memory {
        if from != to {
            check_memory(card, to)?;
        }
        if !rules.allow(compute, to) {
            let fit = rules.memory_modes(compute).to_vec();
            return Err(Refusal::Pair { pci, compute, memory: to, fit });
        }
        // Of the present memory mode the driver itself says which compute modes it takes.
        if let (true, Ok(has)) = (from == to, &card.compute_available)
            && !has.contains(&compute)
        {
            return Err(Refusal::Compute { pci, mode: compute, has: has.clone() });
        }
    }
    Ok(Aim { pci, compute: Change { from: now, to: compute }, memory })
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
        let memory = aim.map_or_else(|| card.memory.clone().ok(), |aim| Some(aim.memory?.to));
        Some((card.pci, memory?))
    };
    let is_changed = |hive: u64| {
        let of = |aim: &&Aim| cards.iter().any(|card| card.pci == aim.pci && card.hive_id == Some(hive));
        aims.iter().filter(of).any(Aim::changes_memory)
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

/// Cards that a profile leaves out, and whose modes a load of the driver would lose, because they cannot be read.
fn unread_beside(aims: &[Aim], cards: &[Card]) -> Vec<Refusal> {
    if !aims.iter().any(Aim::changes_memory) {
        return Vec::new();
    }
    let is_left_out = |card: &&Card| aims.iter().all(|aim| aim.pci != card.pci);
    let unread = |card: &Card| {
        let memory = card.memory.as_ref().err().filter(|why| !why.is_absent());
        let compute = card.compute.as_ref().err().filter(|why| !why.is_absent());
        Some(Refusal::Unread { pci: card.pci, why: compute.or(memory)?.clone() })
    };
    // A card without partitions has no modes to lose.
    let can_be_divided = |card: &&Card| card.rules().map_or_else(|why| !why.is_absent(), |_| true);
    cards.iter().filter(is_left_out).filter(can_be_divided).filter_map(unread).collect()
}

impl Aim {
    /// Whether the card gets another memory mode, which takes a load of the driver.
    #[must_use]
    pub fn changes_memory(&self) -> bool {
        self.memory.is_some_and(|memory| memory.from != memory.to)
    }
}

impl Card {
    /// AMD's name of the chip, else the card's.
    fn model(&self) -> Option<String> {
        self.chip.map(|chip| chip.name.to_owned()).or_else(|| self.name.clone())
    }

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
            Self::NoCard { of, models } => {
                write!(f, "{of} is no card of this machine: it has {}", models.join(", "))
            }
            Self::Twice { pci, cards } => {
                write!(f, "two entries mean {pci}, the second by `cards: {cards}`: keep one")
            }
            Self::Count { of, wanted, found } => {
                write!(f, "{of} means {found} cards of this machine, and the profile's count is {wanted}")
            }
            Self::Virtual(pci) => {
                write!(
                    f,
                    "{pci}: root may not write current_compute_partition, as with a virtual function, whose host sets its \
                     modes"
                )
            }
            Self::Apu(pci) => write!(f, "{pci} is an APU: its firmware sets the memory mode"),
            Self::Unread { pci, why } if why.is_absent() => {
                write!(
                    f,
                    "{pci} cannot be divided: {why}; the entry {{cards: \"{pci}\", skip: true}} leaves it out"
                )
            }
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
                "{pci}: the kernel does not allow {compute} with {memory}; give the entry `memory: {}`",
                fit.iter().map(ToString::to_string).collect::<Vec<_>>().join("` or `memory: ")
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::partitioning::Chip;

    /// An MI300X in SPX and NPS1, by the last two digits of its bus.
    pub(in super::super) fn mi300x(bus: u8) -> Card {
        Card {
            pci: PciAddress::parse(&format!("0000:{bus:02}:00.0")).unwrap(),
            name: Some("AMD Instinct MI300X".to_owned()),
            chip: Chip::of(0x74a1),
            gfx: Ok(crate::Gfx::from_target_version(90_402).unwrap()),
            sriov: None,
            hive_id: None,
            is_writable: true,
            compute: Ok(Compute::Spx),
            memory: Ok(Memory::NPS1),
            compute_available: Ok(vec![Compute::Spx, Compute::Dpx, Compute::Qpx, Compute::Cpx]),
            compute_supported: Ok(vec![Compute::Spx, Compute::Dpx, Compute::Qpx, Compute::Cpx]),
            memory_available: Ok(vec![Memory::NPS1, Memory::NPS4]),
            memory_bytes: Ok(192 << 30),
            shares_domains: false,
            devices: Vec::new(),
        }
    }

    fn entry(cards: &str, compute: Compute, memory: Option<Memory>) -> Entry {
        Entry { cards: Selector::parse(cards), modes: Some(Modes { compute, memory }), count: None }
    }

    fn skip(cards: &str) -> Entry {
        Entry { cards: Selector::parse(cards), modes: None, count: None }
    }

    /// The compute modes that are aimed at, by bus, or the first refusal.
    fn aimed(profile: &[Entry], cards: &[Card]) -> Result<Vec<(String, Compute)>, String> {
        match aims(profile, cards) {
            Ok(aims) => Ok(aims.iter().map(|aim| (aim.pci.to_string(), aim.compute.to)).collect()),
            Err(refusals) => Err(refusals.first().unwrap().to_string()),
        }
    }

    #[test]
    fn the_entry_that_means_fewest_cards_counts() {
        use Compute::{Cpx, Dpx, Qpx};
        let cards = [mi300x(5), mi300x(15)];
        let profile = [entry("all", Cpx, None), entry("mi300x", Dpx, None), entry("0000:15:00.0", Qpx, None)];
        let expected = [("0000:05:00.0".to_owned(), Dpx), ("0000:15:00.0".to_owned(), Qpx)];
        assert_eq!(aimed(&profile, &cards).unwrap(), expected);
        let twice = [entry("MI300X", Cpx, None), entry("AMD Instinct MI300X", Dpx, None)];
        let refused = aimed(&twice, &cards).unwrap_err();
        assert!(refused.starts_with("two entries mean 0000:05:00.0, the second by"), "{refused}");
    }

    #[test]
    fn a_mode_that_cannot_be_is_refused_with_its_reason() {
        use Compute::{Cpx, Dpx};
        type Change = fn(&mut Card);
        let unread = |card: &mut Card| card.memory = Err(Unknown::because("Input/output error"));
        let apu = |card: &mut Card| card.chip = Chip::of(0x74a0);
        let radeon = |card: &mut Card| card.gfx = Ok(crate::Gfx::from_target_version(110_000).unwrap());
        let cases: [(Change, Entry, &str); 5] = [
            (
                |_| (),
                entry("all", Dpx, Some(Memory::NPS4)),
                "the kernel does not allow DPX with NPS4; give the entry `memory: NPS1`",
            ),
            (
                unread,
                entry("all", Cpx, None),
                "stays as it is, because it is not fully read: Input/output error",
            ),
            (apu, entry("all", Cpx, Some(Memory::NPS4)), "is an APU: its firmware sets the memory mode"),
            (
                radeon,
                entry("all", Cpx, None),
                "which has no partitions; the entry {cards: \"0000:05:00.0\", skip: true}",
            ),
            (|_| (), entry("MI350X", Cpx, None), "MI350X is no card of this machine: it has MI300X"),
        ];
        for (change, entry, expected) in cases {
            let mut card = mi300x(5);
            change(&mut card);
            let refused = aimed(&[entry], &[card]).unwrap_err();
            assert!(refused.contains(expected), "{expected}: {refused}");
        }
        assert_eq!(aimed(&[entry("all", Cpx, None)], &[]).unwrap_err(), Refusal::NoCards.to_string());
    }

    /// A load of the driver resets each card's mode, also where a profile leaves the card out.
    #[test]
    fn a_load_of_the_driver_is_refused_while_a_card_beside_is_not_read() {
        let because = || Unknown::because("Input/output error");
        type Change = fn(&mut Card, Unknown);
        let (compute, memory): (Change, Change) =
            (|card, why| card.compute = Err(why), |card, why| card.memory = Err(why));
        let quarters = [entry("0000:05:00.0", Compute::Cpx, Some(Memory::NPS4)), skip("all")];
        let cores = [entry("0000:05:00.0", Compute::Cpx, None), skip("all")];
        for change in [compute, memory] {
            let mut cards = [mi300x(5), mi300x(15)];
            assert!(aims(&quarters, &cards).is_ok());
            change(&mut cards[1], because());
            let refused = aimed(&quarters, &cards).unwrap_err();
            assert_eq!(
                refused,
                "0000:15:00.0 stays as it is, because it is not fully read: Input/output error"
            );
            assert!(aims(&cores, &cards).is_ok(), "without a load the card is left alone");
            // What has no partitions has no modes to lose.
            cards[1].gfx = Ok(crate::Gfx::from_target_version(110_000).unwrap());
            assert!(aims(&quarters, &cards).is_ok());
        }
    }
}
