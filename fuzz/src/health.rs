//! What the daemon says of the GPUs' health, /run/rocworker/health.json, as the wrapper reads it.

use allocation::health::withheld::Withheld;
use allocation::Error;
use inventory::PciAddress;

use crate::assert_fit_for_a_log;
use crate::json::{Object, as_go_decodes, is_shallow, list, optional, value};

/// A card, since when it is quarantined and why, and what is left on it.
type Card = (PciAddress, Option<(u64, String)>, Option<String>);

/// The text of an account.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let as_read = as_go_decodes(text);
    let expected = account(&as_read);
    let now = expected.as_ref().map_or(0, |(written_at, _)| *written_at);
    match parse(text, now) {
        Err(error) => {
            assert_fit_for_a_log(&error.to_string());
            assert!(expected.is_none() || !is_shallow(text), "{error} of {text}");
        }
        Ok((withheld, _)) if is_shallow(text) => {
            let (written_at, cards) = expected.unwrap_or_else(|| panic!("read as {withheld:?}: {text}"));
            counts_while_it_is_fresh(text, written_at, &withheld, &cards);
            names_what_is_withheld(&withheld, &cards);
        }
        Ok(_) => {}
    }
}

fn parse(text: &str, now: u64) -> Result<(Withheld, bool), Error> {
    Withheld::parse(text, now, || None).map(|(withheld, old)| (withheld, old.is_some()))
}

/// An old text withholds what it has in quarantine, and no leftover.
fn counts_while_it_is_fresh(text: &str, written_at: u64, withheld: &Withheld, cards: &[Card]) {
    let at = |now: Option<u64>| now.map(|now| parse(text, now).unwrap());
    for now in [written_at.checked_add(60), written_at.checked_sub(5)] {
        assert!(at(now).is_none_or(|(read, is_old)| read == *withheld && !is_old), "{now:?}: {text}");
    }
    let quarantined: Vec<Card> =
        cards.iter().cloned().map(|(pci, quarantine, _)| (pci, quarantine, None)).collect();
    for now in [written_at.checked_add(61), written_at.checked_sub(6)] {
        let Some((read, is_old)) = at(now) else { continue };
        assert!(is_old, "{now:?}: {text}");
        names_what_is_withheld(&read, &quarantined);
    }
}

fn names_what_is_withheld(withheld: &Withheld, cards: &[Card]) {
    let is_withheld = |(_, quarantine, leftover): &&Card| quarantine.is_some() || leftover.is_some();
    assert_eq!(withheld.is_empty(), !cards.iter().any(|card| is_withheld(&card)));
    for (pci, ..) in cards {
        let expected = cards.iter().filter(is_withheld).find(|(other, ..)| other == pci);
        let card = withheld.card(*pci);
        assert_eq!(card.is_some(), expected.is_some(), "{pci}");
        let (Some(card), Some((_, quarantine, leftover))) = (card, expected) else { continue };
        let said = [
            (&card.quarantine, quarantine.as_ref().map(|(_, reason)| reason)),
            (&card.leftover, leftover.as_ref()),
        ];
        for (said, reason) in said {
            assert_eq!(said.is_some(), reason.is_some(), "{pci}");
            let (Some(said), Some(reason)) = (said, reason) else { continue };
            assert_fit_for_a_log(said);
            let is_plain =
                reason.chars().all(|c| c.is_ascii_alphanumeric() || c == ' ') && reason.len() <= 200;
            assert!(!is_plain || said.ends_with(&format!(": {reason}")), "{said} for {reason}");
        }
    }
}

/// When it was written, and its cards; none where it is to be refused.
fn account(text: &str) -> Option<(u64, Vec<Card>)> {
    let file = Object::read(text, &["schema_version", "written_at", "gpus"])?;
    let version: u64 = value(file.get("schema_version")?)?;
    let written_at = value(file.get("written_at")?)?;
    let cards = list(Some(file.get("gpus")?), card)?;
    (version <= 1).then_some((written_at, cards))
}

fn card(raw: &str) -> Option<Card> {
    let card = Object::read(raw, &["pci", "quarantine", "leftover"])?;
    let pci = PciAddress::parse(&value::<String>(card.get("pci")?)?)?;
    let quarantine = optional(card.get("quarantine"), |raw| {
        let quarantine = Object::read(raw, &["since", "reason"])?;
        Some((value(quarantine.get("since")?)?, value(quarantine.get("reason")?)?))
    })?;
    Some((pci, quarantine, optional(card.get("leftover"), value)?))
}
