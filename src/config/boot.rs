//! What is wanted of the machine's start.

use serde::Deserialize;

use super::{Error, Source};

/// More than any driver takes, and as long as a person would wait for a machine that does not come up.
const LONGEST_WAIT_S: u32 = 600;

/// The unit that runs before engines start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boot {
    /// Whether there is to be one.
    pub unit: bool,
    /// For how long it waits for GPUs that are still coming up, in seconds.
    pub wait_s: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct BootDocument {
    unit: Option<bool>,
    wait_s: Option<u32>,
}

impl BootDocument {
    pub(super) fn check(self, source: &Source) -> Result<Boot, Error> {
        let wait_s = self.wait_s.unwrap_or(30);
        if wait_s > LONGEST_WAIT_S {
            let problem =
                format!("wait-s is more than the {LONGEST_WAIT_S} s that engines may be kept waiting");
            return Err(source.wrong("boot.wait-s", None, problem));
        }
        Ok(Boot { unit: self.unit.unwrap_or(true), wait_s })
    }
}
