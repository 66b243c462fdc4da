//! `/run/rocworker/health.json` as it is on the machine: which GPUs the daemon keeps from containers.

use std::fmt::Display;
use std::time::{SystemTime, UNIX_EPOCH};

use allocation::health::withheld::Withheld;

use crate::open;
use crate::paths::Paths;

/// More than the daemon writes of a thousand cards.
const LIMIT: u64 = 1024 * 1024;

/// Reads what holds now.
///
/// # Errors
/// The sentence that says why nothing is known.
pub fn read(paths: &Paths) -> Result<Withheld, String> {
    let unknown = |why: &dyn Display| {
        format!(
            "which GPUs are unhealthy is unknown, and quarantine withholds none: {} {why}; see systemctl status \
             rocworker",
            paths.health.display()
        )
    };
    let text = open::trusted_text(&paths.health, LIMIT, paths.owner).map_err(|error| unknown(&error))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_err(|_| unknown(&"cannot be compared with a clock that is before 1970"))?;
    Withheld::parse(&text, now.as_secs()).map_err(|error| unknown(&error))
}
