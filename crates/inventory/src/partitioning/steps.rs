//! What setting a profile does, in order.

use super::{Aim, Card, Change, Compute, Memory};
use crate::PciAddress;

/// The writes that bring cards into the modes of a profile. Empty: each card is as the profile asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steps {
    /// Requests for another memory mode. They come first: a compute mode that the later memory mode does not allow makes
    /// the load of the driver fail.
    pub memory: Vec<Switch<Memory>>,
    /// Compute modes, after the reload that a memory mode takes. A reload resets the compute modes of all cards, and so
    /// cards that the profile skips get theirs again.
    pub compute: Vec<Switch<Compute>>,
}

/// A card's mode before a write, and the mode that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch<M> {
    pub pci: PciAddress,
    pub from: M,
    pub to: M,
    /// Whether the profile skips the card, whose mode is restored.
    pub is_restored: bool,
}

impl Steps {
    /// Works out the writes. `cards`: as they are now, among them those that the profile skips.
    #[must_use]
    pub fn of(aims: &[Aim], cards: &[Card]) -> Self {
        let memory = aims.iter().filter_map(|aim| {
            let Change { from, to } = aim.memory.filter(|_| aim.changes_memory())?;
            Some(Switch { pci: aim.pci, from, to, is_restored: false })
        });
        let memory: Vec<_> = memory.collect();
        let is_reloaded = !memory.is_empty();
        let compute = cards.iter().filter_map(|card| {
            let aim = aims.iter().find(|aim| aim.pci == card.pci);
            let now = card.compute.clone().ok()?;
            let to = aim.map_or(now, |aim| aim.compute.to);
            let from = if is_reloaded { after_reload(card, aim).unwrap_or(now) } else { now };
            (from != to).then_some(Switch { pci: card.pci, from, to, is_restored: aim.is_none() })
        });
        Self { compute: compute.collect(), memory }
    }

    /// Whether the driver must be unloaded and loaded again.
    #[must_use]
    pub fn needs_reload(&self) -> bool {
        !self.memory.is_empty()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.compute.is_empty()
    }
}

/// The compute mode in which the driver leaves a card when it is loaded again.
fn after_reload(card: &Card, aim: Option<&Aim>) -> Option<Compute> {
    let memory = aim.map_or_else(|| card.memory.clone().ok(), |aim| Some(aim.memory?.to));
    let is_apu = card.chip.is_some_and(|chip| chip.is_apu);
    card.rules().ok()?.after_load(memory.unwrap_or(Memory::NPS1), is_apu)
}

#[cfg(test)]
mod tests {
    use super::super::profile::tests::mi300x;
    use super::*;

    fn aim(card: &Card, compute: Compute, memory: Option<Memory>) -> Aim {
        let memory = memory.map(|to| Change { from: Memory::NPS1, to });
        Aim { pci: card.pci, compute: Change { from: Compute::Spx, to: compute }, memory }
    }

    /// Each write: the bus, the modes, and whether it restores.
    fn writes(aims: &[Aim], cards: &[Card]) -> Vec<String> {
        let steps = Steps::of(aims, cards);
        let memory = steps.memory.iter().map(|it| format!("{} {}>{}", it.pci, it.from, it.to));
        let restored = |is: bool| if is { " again" } else { "" };
        let compute = steps.compute.iter();
        let compute =
            compute.map(|it| format!("{} {}>{}{}", it.pci, it.from, it.to, restored(it.is_restored)));
        memory.chain(compute).collect()
    }

    #[test]
    fn only_modes_that_differ_are_written_and_a_load_of_the_driver_resets_each_card() {
        use Compute::{Cpx, Dpx, Qpx, Spx};
        let (mut five, mut six) = (mi300x(5), mi300x(6));
        six.compute = Ok(Dpx);
        let cards = [five.clone(), six.clone()];
        for (aims, expected) in [
            (vec![aim(&five, Spx, None)], vec![]),
            (vec![aim(&five, Cpx, None)], vec!["0000:05:00.0 SPX>CPX"]),
            (vec![aim(&five, Spx, Some(Memory::NPS1))], vec![]),
            // The driver picks CPX where it finds NPS4, and SPX for the other card.
            (
                vec![aim(&five, Cpx, Some(Memory::NPS4))],
                vec!["0000:05:00.0 NPS1>NPS4", "0000:06:00.0 SPX>DPX again"],
            ),
            (
                vec![aim(&five, Qpx, Some(Memory::NPS4))],
                vec!["0000:05:00.0 NPS1>NPS4", "0000:05:00.0 CPX>QPX", "0000:06:00.0 SPX>DPX again"],
            ),
        ] {
            assert_eq!(writes(&aims, &cards), expected);
        }
        // A card without modes is left out.
        five.compute = Err(crate::Unknown::absent("there is no file"));
        assert_eq!(writes(&[], &[five]), [""; 0]);
    }
}
