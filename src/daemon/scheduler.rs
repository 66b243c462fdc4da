//! What is to be done when. Pure: moments are durations since one that the caller chose, and nothing sleeps.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    Start,
    /// The kernel told of a device or module.
    Kernel,
    /// A file, folder or node that is watched has changed.
    Files,
    /// Events were lost: nobody knows which.
    Lost,
    /// Somebody asked for it (SIGHUP).
    Reload,
    Timer,
    /// What failed is tried again.
    Retry,
    /// Tags that were kept back may go.
    Settled,
}

/// What a look came to, as far as it decides about the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// Something should be and is not, and may be when it is tried again.
    pub failed: bool,
    /// When what is kept back may go.
    pub settles: Option<Duration>,
}

#[derive(Debug, Clone)]
pub struct Scheduler {
    debounce: Debounce,
    interval: Duration,
    backoff: Backoff,
    causes: BTreeSet<Cause>,
    /// Whether a look goes on: what comes meanwhile is for the next.
    is_busy: bool,
    timer: Duration,
    retry: Option<Duration>,
    settles: Option<Duration>,
}

impl Scheduler {
    /// Looks at once, for the start.
    pub fn new(now: Duration, limits: Limits, interval: Duration) -> Self {
        Self {
            debounce: Debounce::new(limits),
            interval,
            backoff: Backoff::default(),
            causes: BTreeSet::from([Cause::Start]),
            is_busy: false,
            timer: now + interval,
            retry: None,
            settles: None,
        }
    }

    /// The slow timer by another interval.
    pub fn every(&mut self, now: Duration, interval: Duration) {
        if interval != self.interval {
            (self.interval, self.timer) = (interval, now + interval);
        }
    }

    pub fn heard(&mut self, now: Duration, cause: Cause) {
        self.causes.insert(cause);
        if matches!(cause, Cause::Kernel | Cause::Files | Cause::Lost) {
            self.debounce.came(now);
        }
    }

    /// When the next look is; `None` while one goes on.
    pub fn next(&self) -> Option<Duration> {
        let is_at_once = self.causes.iter().any(|it| matches!(it, Cause::Start | Cause::Reload));
        let timers = [self.debounce.due(), self.retry, self.settles, Some(self.timer)];
        let next = timers.into_iter().flatten().min();
        if self.is_busy { None } else { next.map(|next| if is_at_once { Duration::ZERO } else { next }) }
    }

    /// Begins a look that is due, and says why. It goes on until [`Scheduler::ended`].
    pub fn begin(&mut self, now: Duration) -> Option<BTreeSet<Cause>> {
        if self.next().is_none_or(|next| next > now) {
            return None;
        }
        let is_over = |at: Option<Duration>| at.is_some_and(|at| at <= now);
        let timers = [
            (is_over(Some(self.timer)), Cause::Timer),
            (is_over(self.retry), Cause::Retry),
            (is_over(self.settles), Cause::Settled),
        ];
        self.causes.extend(timers.into_iter().filter(|(is_over, _)| *is_over).map(|(_, cause)| cause));
        self.debounce.clear();
        self.is_busy = true;
        // Every look is one of the slow timer's, too.
        (self.timer, self.retry, self.settles) = (now + self.interval, None, None);
        Some(std::mem::take(&mut self.causes))
    }

    pub fn ended(&mut self, now: Duration, ended: Ended) {
        self.is_busy = false;
        self.settles = ended.settles;
        if ended.failed {
            self.retry = Some(now + self.backoff.failed());
        } else {
            self.backoff.succeeded();
        }
    }

    /// How often in a row a look has failed, and when it is tried again.
    pub fn failing(&self) -> Option<(u32, Option<Duration>)> {
        let failures = self.backoff.failures();
        (failures > 0).then_some((failures, self.retry))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For so long nothing more may have come.
    pub quiet: Duration,
    /// After so long it is enough, whatever still comes.
    pub most: Duration,
}

/// Something has come and is waited with. Moments are durations since one that the caller chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Debounce {
    limits: Limits,
    /// The first and the last of what came.
    burst: Option<(Duration, Duration)>,
}

impl Debounce {
    fn new(limits: Limits) -> Self {
        Self { limits, burst: None }
    }

    fn came(&mut self, now: Duration) {
        let first = self.burst.map_or(now, |(first, _)| first);
        self.burst = Some((first, now));
    }

    /// When it is enough; `None`: nothing came.
    fn due(&self) -> Option<Duration> {
        let (first, last) = self.burst?;
        Some((last + self.limits.quiet).min(first + self.limits.most))
    }

    fn clear(&mut self) {
        self.burst = None;
    }
}

const FIRST: Duration = Duration::from_secs(1);

/// Never later than this: somebody may have put it right without a trace that is watched.
const LONGEST: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Backoff {
    failures: u32,
}

impl Backoff {
    /// It failed once more; after how long it is tried again.
    fn failed(&mut self) -> Duration {
        let times = 2_u32.saturating_pow(self.failures);
        self.failures = self.failures.saturating_add(1);
        FIRST.saturating_mul(times).min(LONGEST)
    }

    fn succeeded(&mut self) {
        self.failures = 0;
    }

    fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { quiet: Duration::from_millis(100), most: Duration::from_millis(400) };
    const INTERVAL: Duration = Duration::from_secs(300);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// One that has done its first look.
    fn begun() -> Scheduler {
        let mut scheduler = Scheduler::new(ms(0), LIMITS, INTERVAL);
        assert_eq!(scheduler.begin(ms(0)), Some(BTreeSet::from([Cause::Start])));
        scheduler.ended(ms(10), Ended::default());
        scheduler
    }

    /// The moments at which looks begin, and why, when this is heard and each look takes so long.
    fn looks(
        mut scheduler: Scheduler,
        heard: &[(u64, Cause)],
        takes: u64,
        until: u64,
    ) -> Vec<(u64, BTreeSet<Cause>)> {
        let mut looks = Vec::new();
        let mut ends = None;
        for now in 11..until {
            heard.iter().filter(|(at, _)| *at == now).for_each(|(_, cause)| scheduler.heard(ms(now), *cause));
            if ends == Some(now) {
                scheduler.ended(ms(now), Ended::default());
                ends = None;
            }
            if let Some(causes) = scheduler.begin(ms(now)) {
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
            assert_eq!(scheduler.next(), None, "it goes on");
            scheduler.ended(at, Ended { failed: true, settles: None });
            at += ms(wait);
            assert_eq!(scheduler.next(), Some(at));
        }
        assert_eq!(scheduler.failing(), Some((3, Some(at))));
        scheduler.heard(at - ms(3000), Cause::Files);
        assert_eq!(scheduler.next(), Some(at - ms(2900)));
        assert_eq!(scheduler.begin(at - ms(2900)), Some(BTreeSet::from([Cause::Files])));
        scheduler.ended(at, Ended::default());
        assert_eq!((scheduler.failing(), scheduler.next()), (None, Some(at - ms(2900) + INTERVAL)));
    }

    #[test]
    fn what_is_kept_back_has_its_own_look() {
        let mut scheduler = begun();
        scheduler.heard(ms(20), Cause::Kernel);
        scheduler.begin(ms(120)).unwrap();
        scheduler.ended(ms(130), Ended { failed: false, settles: Some(ms(30_120)) });
        assert_eq!(scheduler.next(), Some(ms(30_120)));
        assert_eq!(scheduler.begin(ms(30_120)), Some(BTreeSet::from([Cause::Settled])));
    }

    #[test]
    fn another_interval_counts_from_now_and_the_same_changes_nothing() {
        let mut scheduler = begun();
        scheduler.every(ms(5000), INTERVAL);
        assert_eq!(scheduler.next(), Some(INTERVAL));
        scheduler.every(ms(5000), ms(10_000));
        assert_eq!(scheduler.next(), Some(ms(15_000)));
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
