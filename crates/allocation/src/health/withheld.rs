//! health.json as the wrapper reads it at a create: only what keeps a GPU from a container. It goes past all else, so that
//! a longer file costs it little.

use inventory::PciAddress;
use inventory::health::{Health, are_different, is_fresh};

use crate::document::Document as _;
use crate::error::refuse;
use crate::json::{Scanner, keyed, member, object, whole};
use crate::quoted::harmless;
use crate::{Error, rfc3339};

/// The longest reason that a sentence repeats, in characters.
const LONGEST_REASON: usize = 200;

/// The cards that the daemon keeps from containers. Empty: none, or nothing is known.
///
/// A judgement that is old says of no card that it is healthy. So a quarantine lasts until the daemon judges again, or
/// the machine starts anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withheld {
    cards: Vec<Card>,
}

/// A card, with all its partitions. Each reason is the end of a sentence about a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    pci: Option<PciAddress>,
    /// Why no container gets it.
    pub quarantine: Option<String>,
    /// Why nobody can lease it just now.
    pub leftover: Option<String>,
}

impl Withheld {
    /// What the text says of this time, in seconds since 1970. Of a text that is not of this time: what is quarantined
    /// still, and why it is not of this time, as the end of a sentence about it. `boot_id`: of this boot, where it is
    /// known.
    ///
    /// # Errors
    /// It is damaged, or of a newer version: the end of a sentence about it.
    pub fn parse(
        text: &str,
        now: u64,
        boot_id: impl FnOnce() -> Option<String>,
    ) -> Result<(Self, Option<Error>), Error> {
        let file = whole::<File>(text);
        let version = match &file {
            Ok(file) => Some(file.schema_version),
            // A newer version may have another form.
            Err(_) => member(text, "schema_version", Scanner::integer),
        };
        if let Some(newer) = version.filter(|version| *version > u64::from(Health::SCHEMA_VERSION)) {
            return refuse(format!(
                "has schema_version {newer} of a newer version (this one reads {})",
                Health::SCHEMA_VERSION
            ));
        }
        let File { written_at, boot_id: written_in, mut cards, .. } =
            file.map_err(|fault| Error::new(format!("is no {}: {}", Health::NAME, fault.of(text))))?;
        let mut old = None;
        if !is_fresh(written_at, now) {
            // What was left on a GPU may be gone by now.
            cards.iter_mut().for_each(|card| card.leftover = None);
            if cards.iter().any(|card| card.quarantine.is_some())
                && are_different(written_in.as_deref(), boot_id().as_deref())
            {
                cards.clear();
            }
            let (written, now) = (rfc3339(written_at), rfc3339(now));
            old = Some(Error::new(format!("was written at {written}, which says nothing of now, {now}")));
        }
        cards.retain(|card| card.quarantine.is_some() || card.leftover.is_some());
        Ok((Self { cards }, old))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cards.is_empty()
    }

    /// The card at this address, if anything keeps it from containers.
    #[must_use]
    pub fn card(&self, pci: PciAddress) -> Option<&Card> {
        self.cards.iter().find(|card| card.pci == Some(pci))
    }
}

#[derive(Default)]
struct File {
    schema_version: u64,
    written_at: u64,
    boot_id: Option<String>,
    cards: Vec<Card>,
}

#[derive(Default)]
struct Quarantine {
    since: u64,
    reason: String,
}

keyed!(File, required ["schema_version", "written_at", "gpus"], |file, scanner| {
    "schema_version" => file.schema_version = scanner.integer()?,
    "written_at" => file.written_at = scanner.integer()?,
    "boot_id" => file.boot_id = scanner.optional(Scanner::string_of_its_own)?,
    "gpus" => file.cards = scanner.list(object)?,
}, |_file, _key| Ok(()));

keyed!(Card, required ["pci"], |card, scanner| {
    "pci" => card.pci = Some(scanner.named("a PCI address like \"0000:64:00.0\"", PciAddress::parse)?),
    "quarantine" => card.quarantine = scanner.optional(object)?.map(|Quarantine { since, reason }| {
        format!("is quarantined since {}: {reason}", rfc3339(since))
    }),
    "leftover" => card.leftover = scanner.optional(reason)?.map(|reason| format!("cannot be leased yet: {reason}")),
}, |_card, _key| Ok(()));

keyed!(Quarantine, required ["since", "reason"], |quarantine, scanner| {
    "since" => quarantine.since = scanner.integer()?,
    "reason" => quarantine.reason = reason(scanner)?,
}, |_quarantine, _key| Ok(()));

/// A sentence within another: without its full stop.
fn reason(scanner: &mut Scanner<'_>) -> Result<String, crate::json::Fault> {
    let text = scanner.text()?;
    Ok(harmless(text.trim_end_matches('.'), LONGEST_REASON))
}

#[cfg(test)]
mod tests;
