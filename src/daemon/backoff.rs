//! What fails is tried again, later each time.

use std::time::Duration;

/// After the first failure.
const FIRST: Duration = Duration::from_secs(1);

/// Never later than this: somebody may have put it right without a trace that is watched.
const LONGEST: Duration = Duration::from_secs(300);

/// How often something has failed in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// It failed once more; after how long it is tried again.
    pub fn failed(&mut self) -> Duration {
        let times = 2_u32.saturating_pow(self.failures);
        self.failures = self.failures.saturating_add(1);
        FIRST.saturating_mul(times).min(LONGEST)
    }

    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// How often in a row.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_waits_twice_as_long_up_to_five_minutes_and_a_success_begins_anew() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..12).map(|_| backoff.failed().as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        (0..100).for_each(|_| assert_eq!(backoff.failed(), LONGEST));
        backoff.succeeded();
        assert_eq!((backoff.failures(), backoff.failed().as_secs()), (0, 1));
    }
}
