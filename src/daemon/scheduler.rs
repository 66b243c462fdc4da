//! What is due when. Pure: moments are durations since one that the caller chose, and nothing sleeps.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A look waits until nothing more has come for so long: a managed file that changes is restored within a second, by
/// this and a look.
const QUIET: Duration = Duration::from_millis(100);

/// A look begins at most this long after the first event, even if more events come.
const MOST: Duration = Duration::from_millis(400);

/// The first retry comes after a second, and each later one after twice as long as the one before.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause before a retry: a repair may leave no trace that is watched.
const LONGEST: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    Start,
    /// The kernel reported a device or module.
    Kernel,
    /// A file, folder or node that is watched has changed.
    Files,
    /// KFD's topology has changed: a card has other partitions.
    Topology,
    /// The kernel dropped events.
    Lost,
    /// SIGHUP asks to read the configuration again.
    Reload,
    Timer,
    /// What failed is tried again.
    Retry,
    /// The wait for quiet is over: tags may go, or units may restart.
    Settled,
}

#[derive(Debug, Clone)]
pub struct Scheduler {
    causes: BTreeSet<Cause>,
    /// The first and the last event since the last look.
    burst: Option<(Duration, Duration)>,
    timer: Duration,
    /// Set where the last look failed.
    retry: Option<Duration>,
    settled: Option<Duration>,
    failures: u32,
}

/// What a look came to, as far as it decides about the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// When the look began and ended.
    pub began: Duration,
    pub now: Duration,
    /// Whether something failed that may succeed in a retry.
    pub failed: bool,
    /// When waits for quiet are over: for tags that may go, and for units that may restart.
    pub settled: [Option<Duration>; 2],
    /// How long the next look waits at most.
    pub interval: Duration,
}

impl Scheduler {
    /// Looks at once, for the start.
    pub fn at_start() -> Self {
        let causes = BTreeSet::from([Cause::Start]);
        Self { causes, burst: None, timer: Duration::MAX, retry: None, settled: None, failures: 0 }
    }

    pub fn heard(&mut self, now: Duration, cause: Cause) {
        self.causes.insert(cause);
        if matches!(cause, Cause::Kernel | Cause::Files | Cause::Topology | Cause::Lost) {
            let first = self.burst.map_or(now, |(first, _)| first);
            self.burst = Some((first, now));
        }
    }

    /// When the next look is.
    pub fn next(&self) -> Duration {
        if self.causes.iter().any(|it| matches!(it, Cause::Start | Cause::Reload)) {
            return Duration::ZERO;
        }
        let burst = self.burst.map(|(first, last)| (last + QUIET).min(first + MOST));
        [burst, self.retry, self.settled].into_iter().flatten().fold(self.timer, Duration::min)
    }

    /// Begins a look that is due, and says why. [`Scheduler::ended`] follows it.
    pub fn begin(&mut self, now: Duration) -> Option<BTreeSet<Cause>> {
        if self.next() > now {
            return None;
        }
        let timers =
            [(Some(self.timer), Cause::Timer), (self.retry, Cause::Retry), (self.settled, Cause::Settled)];
        let is_over = |at: Option<Duration>| at.is_some_and(|at| at <= now);
        self.causes.extend(timers.into_iter().filter(|(at, _)| is_over(*at)).map(|(_, cause)| cause));
        self.burst = None;
        Some(std::mem::take(&mut self.causes))
    }

    pub fn ended(&mut self, Ended { began, now, failed, settled, interval }: Ended) {
        let pause = FIRST.saturating_mul(2_u32.saturating_pow(self.failures)).min(LONGEST);
        self.retry = failed.then(|| now + pause);
        self.failures = if failed { self.failures.saturating_add(1) } else { 0 };
        self.timer = began + interval;
        // The look decided by the time at which it began. What was due then is tried again with all that fails.
        self.settled = settled.into_iter().flatten().filter(|at| *at > began).min();
    }

    /// How many looks in a row have failed, and when the next one is.
    pub fn failing(&self) -> Option<(u32, Duration)> {
        self.retry.map(|again| (self.failures, again))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(300);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A look that takes no time and finds nothing.
    fn ended(now: Duration) -> Ended {
        Ended { began: now, now, failed: false, settled: [None; 2], interval: INTERVAL }
    }

    /// A scheduler that has done its first look.
    fn begun() -> Scheduler {
        let mut scheduler = Scheduler::at_start();
        assert_eq!(scheduler.begin(ms(0)), Some(BTreeSet::from([Cause::Start])));
        scheduler.ended(ended(ms(0)));
        scheduler
    }

    /// The moments at which looks begin, and why, when this is heard and each look takes so long.
    fn looks(
        mut scheduler: Scheduler,
        heard: &[(u64, Cause)],
        takes: u64,
        until: u64,
    ) -> Vec<(u64, BTreeSet<Cause>)> {
        let mut looks: Vec<(u64, BTreeSet<Cause>)> = Vec::new();
        let mut ends = None;
        for now in 11..until {
            heard.iter().filter(|(at, _)| *at == now).for_each(|(_, cause)| scheduler.heard(ms(now), *cause));
            if ends == Some(now) {
                scheduler.ended(Ended { began: ms(now - takes), ..ended(ms(now)) });
                ends = None;
            }
            if ends.is_none()
                && let Some(causes) = scheduler.begin(ms(now))
            {
                looks.push((now, causes));
                ends = Some(now + takes);
            }
        }
        looks
    }

    #[test]
    fn a_burst_is_one_look() {
        let burst: Vec<_> = (0..50).map(|n| (20 + n, Cause::Kernel)).chain([(60, Cause::Files)]).collect();
        let expected = vec![(169, BTreeSet::from([Cause::Kernel, Cause::Files]))];
        assert_eq!(looks(begun(), &burst, 10, 5000), expected);
    }

    #[test]
    fn a_burst_without_end_is_a_look_for_each_time_that_is_waited_and_one_more() {
        for (takes, length) in [(1, 2000), (50, 2000), (700, 2000), (10, 9999)] {
            let burst: Vec<_> = (0..length).map(|n| (20 + n, Cause::Kernel)).collect();
            let count = looks(begun(), &burst, takes, 2 * length + 3000).len();
            let most = usize::try_from(length.div_ceil(400) + 1).unwrap();
            assert!((1..=most).contains(&count), "{count} looks of {takes} ms for a burst of {length} ms");
        }
    }

    #[test]
    fn what_comes_while_a_look_goes_on_is_for_the_next() {
        let found = looks(begun(), &[(20, Cause::Files), (150, Cause::Kernel)], 500, 3000);
        let expected = vec![(120, BTreeSet::from([Cause::Files])), (620, BTreeSet::from([Cause::Kernel]))];
        assert_eq!(found, expected);
    }

    #[test]
    fn whoever_asks_does_not_wait_and_the_slow_timer_counts_from_the_last_look() {
        let found = looks(begun(), &[(20, Cause::Reload)], 10, 300_100);
        let expected = vec![(20, BTreeSet::from([Cause::Reload])), (300_020, BTreeSet::from([Cause::Timer]))];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_fails_is_tried_again_later_each_time_and_an_event_does_not_wait_for_it() {
        let mut scheduler = begun();
        scheduler.heard(ms(20), Cause::Files);
        let mut at = ms(120);
        for wait in [1000, 2000, 4000] {
            assert!(scheduler.begin(at).is_some());
            scheduler.ended(Ended { failed: true, ..ended(at) });
            at += ms(wait);
            assert_eq!(scheduler.next(), at);
        }
        assert_eq!(scheduler.failing(), Some((3, at)));
        scheduler.heard(at - ms(3000), Cause::Files);
        assert_eq!(scheduler.next(), at - ms(2900));
        assert_eq!(scheduler.begin(at - ms(2900)), Some(BTreeSet::from([Cause::Files])));
        scheduler.ended(ended(at - ms(2900)));
        assert_eq!((scheduler.failing(), scheduler.next()), (None, at - ms(2900) + INTERVAL));
    }

    #[test]
    fn what_waits_for_quiet_has_its_own_look() {
        let mut scheduler = begun();
        scheduler.heard(ms(20), Cause::Kernel);
        scheduler.begin(ms(120)).unwrap();
        scheduler.ended(Ended { settled: [Some(ms(30_120)), None], ..ended(ms(130)) });
        assert_eq!(scheduler.next(), ms(30_120));
        assert_eq!(scheduler.begin(ms(30_120)), Some(BTreeSet::from([Cause::Settled])));
    }

    /// The look decided by the time at which it began: the wait was not over then.
    #[test]
    fn a_wait_that_ends_during_a_look_has_its_own_look_at_once() {
        let mut scheduler = begun();
        let settled = [Some(ms(500)), Some(ms(90_000))];
        for (began, now, next) in [(400, 600, 500), (500, 600, 90_000)] {
            scheduler.ended(Ended { began: ms(began), settled, ..ended(ms(now)) });
            assert_eq!(scheduler.next(), ms(next), "{began}");
        }
    }

    #[test]
    fn another_interval_counts_from_the_look_that_brings_it() {
        let mut scheduler = begun();
        scheduler.ended(Ended { began: ms(5000), interval: ms(10_000), ..ended(ms(5100)) });
        assert_eq!(scheduler.next(), ms(15_000));
    }

    #[test]
    fn it_waits_for_quiet_and_not_longer_than_the_limit() {
        for (came, due) in [
            (&[][..], 300_000),
            (&[0], 100),
            (&[0, 50, 90], 190),
            (&[0, 90, 180, 270, 350], 400),
            (&[1000, 1350, 1390], 1400),
        ] {
            let mut scheduler = begun();
            came.iter().for_each(|at| scheduler.heard(ms(*at), Cause::Files));
            assert_eq!(scheduler.next(), ms(due), "{came:?}");
            scheduler.begin(ms(due)).unwrap();
            scheduler.ended(ended(ms(due)));
            assert_eq!(scheduler.next(), ms(due) + INTERVAL);
        }
    }

    #[test]
    fn each_failure_waits_twice_as_long_up_to_five_minutes_and_a_success_begins_anew() {
        let mut scheduler = begun();
        let mut wait = |failed| {
            scheduler.ended(Ended { failed, ..ended(ms(0)) });
            scheduler.failing().map(|(_, again)| again.as_secs())
        };
        let expected = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300];
        assert_eq!([(); 12].map(|()| wait(true)), expected.map(Some));
        (0..100).for_each(|_| assert_eq!(wait(true), Some(300)));
        assert_eq!((wait(false), wait(true)), (None, Some(1)));
    }
}
