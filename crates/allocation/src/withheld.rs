//! Reads from the daemon's health.json which GPUs are kept from containers.

use inventory::PciAddress;
use inventory::health::{Health, SCHEMA_VERSION};

use crate::document::Document;
use crate::quoted::harmless;
use crate::{Error, rfc3339};

/// The longest reason that a sentence repeats, in characters.
const LONGEST_REASON: usize = 200;

impl Document for Health {
    const SCHEMA_VERSION: u32 = SCHEMA_VERSION;
    const NAME: &'static str = "health file";
}

/// The cards that the daemon keeps from containers. Empty: none, or nothing is known.
///
/// A judgement that is old says of no card that it is healthy. So a quarantine lasts until the daemon judges again, or
/// the machine starts anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withheld {
    cards: Vec<Card>,
}

/// A card, with all its partitions. Each reason is the end of a sentence about a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    pci: PciAddress,
    /// Why no container gets it.
    pub quarantine: Option<String>,
    /// Why no container can lease it just now.
    pub leftover: Option<String>,
}

impl Withheld {
    /// Reads the cards that health.json withholds at `now`, in seconds since 1970. A file that is not fresh
    /// only counts for its quarantines; the second value then says why it is not fresh, as the end of a
    /// sentence about it. `boot_id` gives this boot's id where it is known: a quarantine ends with its boot.
    ///
    /// # Errors
    /// The end of a sentence about the file, which is damaged or of a newer version.
    pub fn parse(
        text: &str,
        now: u64,
        boot_id: impl FnOnce() -> Option<String>,
    ) -> Result<(Self, Option<Error>), Error> {
        Ok(Self::of(&Health::parse(text)?, now, boot_id))
    }

    /// The cards of a health file that is read already, as [`Self::parse`] gives them.
    #[must_use]
    pub fn of(health: &Health, now: u64, boot_id: impl FnOnce() -> Option<String>) -> (Self, Option<Error>) {
        let is_fresh = health.is_fresh(now);
        let cards = health.gpus.iter().map(|gpu| Card {
            pci: gpu.pci,
            quarantine: gpu
                .quarantine
                .as_ref()
                .map(|it| format!("is quarantined since {}: {}", rfc3339(it.since), reason(&it.reason))),
            // Leftovers on a GPU may be gone since the file was written.
            leftover: gpu
                .leftover
                .as_deref()
                .filter(|_| is_fresh)
                .map(|it| format!("cannot be leased yet: {}", reason(it))),
        });
        let cards: Vec<Card> =
            cards.filter(|card| card.quarantine.is_some() || card.leftover.is_some()).collect();
        if is_fresh {
            return (Self { cards }, None);
        }
        let is_over = !cards.is_empty() && health.is_of_another_boot(boot_id().as_deref());
        let (written, now) = (rfc3339(health.written_at), rfc3339(now));
        let old = Error::new(format!("was written at {written}, which says nothing of now, {now}"));
        (Self { cards: if is_over { Vec::new() } else { cards } }, Some(old))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cards.is_empty()
    }

    /// The card at this address, if anything keeps it from containers.
    #[must_use]
    pub fn card(&self, pci: PciAddress) -> Option<&Card> {
        self.cards.iter().find(|card| card.pci == pci)
    }
}

/// A sentence within another: without its full stop.
fn reason(text: &str) -> String {
    harmless(text.trim_end_matches('.'), LONGEST_REASON)
}

#[cfg(test)]
mod tests;
