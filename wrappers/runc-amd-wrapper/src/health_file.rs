//! `/run/rocworker/health.json` as it is on the machine: which GPUs the daemon keeps from containers.

use std::fmt::Display;
use std::time::{SystemTime, UNIX_EPOCH};

use allocation::withheld::Withheld;

use crate::paths::Paths;
use lease::{alive, open};

/// The most bytes that are read of health.json: the daemon writes less for a thousand cards.
const LIMIT: u64 = 1024 * 1024;

/// Reads what is withheld, and a sentence where the daemon does not say what holds now.
pub fn read(paths: &Paths) -> (Withheld, Option<String>) {
    let unknown = |withheld: &str, why: &dyn Display| {
        let path = paths.health.display();
        Some(format!(
            "which GPUs are unhealthy is unknown, and quarantine withholds {withheld}: {path} {why}; see systemctl \
             status rocworker"
        ))
    };
    let text = match open::trusted_text(&paths.health, LIMIT, paths.lease.owner) {
        Ok(text) => text,
        Err(error) => return (Withheld::default(), unknown("none", &error)),
    };
    // If the clock is before 1970, every file's time lies in the future.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match Withheld::parse(&text, now.as_secs(), || alive::boot_id(&paths.lease.proc).ok()) {
        Ok((withheld, None)) => (withheld, None),
        Ok((withheld, Some(old))) => {
            let which = if withheld.is_empty() { "none" } else { "what it withheld last" };
            let warning = unknown(which, &old);
            (withheld, warning)
        }
        Err(error) => (Withheld::default(), unknown("none", &error)),
    }
}
