//! What the daemon says of the GPUs' health, /run/rocworker/health.json, as the wrapper takes it.

use allocation::document::Document as _;
use allocation::withheld::Withheld;
use inventory::health::{GpuHealth, Health};

use crate::assert_fit_for_a_log;

/// The text of an account.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Health::parse(text) {
        Err(error) => {
            assert_fit_for_a_log(&error.to_string());
            assert_eq!(Withheld::parse(text, 0, || None), Err(error), "{text}");
        }
        Ok(health) => {
            counts_while_it_is_fresh(text, &health);
            ends_with_its_boot(text, &health);
        }
    }
}

fn parse(text: &str, now: u64, boot_id: Option<&str>) -> (Withheld, bool) {
    let (withheld, old) = Withheld::parse(text, now, || boot_id.map(str::to_owned)).expect("it was read");
    (withheld, old.is_some())
}

/// An old text withholds what it has in quarantine, and no leftover.
fn counts_while_it_is_fresh(text: &str, health: &Health) {
    let at = health.written_at;
    for now in [Some(at), at.checked_add(60), at.checked_sub(5)].into_iter().flatten() {
        let (withheld, is_old) = parse(text, now, None);
        assert!(!is_old, "{now}: {text}");
        names_what_is_withheld(&withheld, &health.gpus);
    }
    let gpus: Vec<GpuHealth> =
        health.gpus.iter().cloned().map(|gpu| GpuHealth { leftover: None, ..gpu }).collect();
    for now in [at.checked_add(61), at.checked_sub(6)].into_iter().flatten() {
        let (withheld, is_old) = parse(text, now, None);
        assert!(is_old, "{now}: {text}");
        names_what_is_withheld(&withheld, &gpus);
    }
}

/// An old text says nothing in another boot, and what it has in quarantine in its own.
fn ends_with_its_boot(text: &str, health: &Health) {
    let (Some(boot_id), Some(now)) = (&health.boot_id, health.written_at.checked_add(61)) else { return };
    assert!(parse(text, now, Some(&format!("{boot_id}x"))).0.is_empty(), "{text}");
    assert_eq!(parse(text, now, Some(boot_id)), parse(text, now, None), "{text}");
}

fn names_what_is_withheld(withheld: &Withheld, gpus: &[GpuHealth]) {
    let is_withheld = |gpu: &&GpuHealth| gpu.quarantine.is_some() || gpu.leftover.is_some();
    assert_eq!(withheld.is_empty(), !gpus.iter().any(|gpu| is_withheld(&gpu)));
    for GpuHealth { pci, .. } in gpus {
        let expected = gpus.iter().filter(is_withheld).find(|other| other.pci == *pci);
        let card = withheld.card(*pci);
        assert_eq!(card.is_some(), expected.is_some(), "{pci}");
        let (Some(card), Some(expected)) = (card, expected) else { continue };
        let said = [
            (&card.quarantine, expected.quarantine.as_ref().map(|quarantine| &quarantine.reason)),
            (&card.leftover, expected.leftover.as_ref()),
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
