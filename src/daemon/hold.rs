//! A GPU that resets and comes back must not take a worker's tags away and bring them again: each of the two is taken in
//! by a restart of the worker, and steps that ask for a GPU find none meanwhile. So the loss of tags has to last.

use std::time::Duration;

/// Whether tags are about to go, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// For so long a loss has to last.
    lasting: Duration,
    since: Option<Duration>,
}

impl Hold {
    #[must_use]
    pub fn new(lasting: Duration) -> Self {
        Self { lasting, since: None }
    }

    /// The same by another time.
    pub fn last(&mut self, lasting: Duration) {
        self.lasting = lasting;
    }

    /// Whether tags may go now.
    #[must_use]
    pub fn may_go(&self, now: Duration) -> bool {
        self.lasting.is_zero() || self.ends().is_some_and(|ends| ends <= now)
    }

    /// What a look found: whether tags would go that were kept back.
    pub fn saw(&mut self, now: Duration, is_held: bool) {
        self.since = is_held.then(|| self.since.unwrap_or(now));
    }

    /// When they may go; `None`: none is about to.
    #[must_use]
    pub fn ends(&self) -> Option<Duration> {
        Some(self.since? + self.lasting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn tags_go_once_their_loss_has_lasted_and_a_return_begins_anew() {
        let mut hold = Hold::new(s(30));
        assert!(!hold.may_go(s(1000)), "nothing is known of a loss yet");
        hold.saw(s(100), true);
        hold.saw(s(110), true);
        assert_eq!((hold.ends(), hold.may_go(s(129)), hold.may_go(s(130))), (Some(s(130)), false, true));
        // It came back at the last moment, and goes again.
        hold.saw(s(129), false);
        assert_eq!(hold.ends(), None);
        hold.saw(s(131), true);
        assert_eq!((hold.may_go(s(160)), hold.may_go(s(161))), (false, true));
    }

    #[test]
    fn without_a_time_they_go_at_once() {
        assert!(Hold::new(s(0)).may_go(s(0)));
    }
}
