//! A burst becomes one: what comes close together is waited for, and never for long.

use std::time::Duration;

/// How bursts are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For so long nothing more may have come.
    pub quiet: Duration,
    /// After so long it is enough, whatever still comes.
    pub most: Duration,
}

/// Something has come and is waited with. Moments are durations since one that the caller chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Debounce {
    limits: Limits,
    /// The first and the last of what came.
    burst: Option<(Duration, Duration)>,
}

impl Debounce {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, burst: None }
    }

    /// Something came.
    pub fn came(&mut self, now: Duration) {
        let first = self.burst.map_or(now, |(first, _)| first);
        self.burst = Some((first, now));
    }

    /// When it is enough; `None`: nothing came.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        let (first, last) = self.burst?;
        Some((last + self.limits.quiet).min(first + self.limits.most))
    }

    /// What came is taken care of from here on.
    pub fn clear(&mut self) {
        self.burst = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { quiet: Duration::from_millis(100), most: Duration::from_millis(400) };

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn it_waits_for_quiet_and_not_longer_than_the_limit() {
        for (came, due) in [
            (&[][..], None),
            (&[0], Some(100)),
            (&[0, 50, 90], Some(190)),
            (&[0, 90, 180, 270, 350], Some(400)),
            (&[1000, 1350, 1390], Some(1400)),
        ] {
            let mut debounce = Debounce::new(LIMITS);
            came.iter().for_each(|at| debounce.came(ms(*at)));
            assert_eq!(debounce.due(), due.map(ms), "{came:?}");
            debounce.clear();
            assert_eq!(debounce.due(), None);
        }
    }
}
