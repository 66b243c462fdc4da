//! Moments as people and file names write them.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A moment, to the second, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    seconds: u64,
}

impl Timestamp {
    /// A clock before 1970 is a clock that was never set: then 1970.
    #[must_use]
    pub fn of(time: SystemTime) -> Self {
        Self { seconds: time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()) }
    }

    /// Seconds since 1970.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.seconds
    }

    /// The time in the form that file names have: `20261121T073700Z`.
    #[must_use]
    pub fn compact(self) -> String {
        self.to_string().replace(['-', ':'], "")
    }
}

impl fmt::Display for Timestamp {
    /// `2026-11-21T07:37:00Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&allocation::rfc3339(self.seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_a_form_for_people_and_one_for_file_names() {
        let moment = Timestamp { seconds: 1_795_246_620 };
        assert_eq!(moment.to_string(), "2026-11-21T07:37:00Z");
        assert_eq!(moment.compact(), "20261121T073700Z");
    }
}
