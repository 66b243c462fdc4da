//! A GPU that resets and comes back must not take a worker's tags away and bring them again: each of the two is taken in
//! by a restart of the worker, and steps that ask for a GPU find none meanwhile. So the loss of tags has to last.

use std::time::Duration;

use crate::config::Config;

/// Whether two configurations decide the same about the tags of a machine's GPUs. What a person decides does not wait.
pub fn decide_alike(one: &Config, other: &Config) -> bool {
    one.compute_runtime == other.compute_runtime
        && one.devices == other.devices
        && one.tags == other.tags
        && one.concourse == other.concourse
}

/// Whether tags are about to go, and since when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TagGrace {
    /// For so long a loss has to last.
    lasting: Duration,
    loss: Option<Loss>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// They are kept, since then.
    Kept(Duration),
    /// They might go, and are there still: nothing may be changed here, or it could not be.
    Left,
}

impl TagGrace {
    /// The same by another time.
    pub fn last(&mut self, lasting: Duration) {
        self.lasting = lasting;
    }

    /// Whether tags may go now. What might go once and is lost still does not wait again.
    pub fn may_go(&self, now: Duration) -> bool {
        self.lasting.is_zero() || self.loss == Some(Loss::Left) || self.ends().is_some_and(|ends| ends <= now)
    }

    /// What a look has left: whether tags would go (`is_lost`), and whether it has kept them (`is_held`).
    pub fn saw(&mut self, now: Duration, is_lost: bool, is_held: bool) {
        self.loss = match (is_lost, is_held, self.loss) {
            (false, ..) => None,
            (true, true, Some(loss)) => Some(loss),
            (true, true, None) => Some(Loss::Kept(now)),
            (true, false, _) => Some(Loss::Left),
        };
    }

    /// When they may go; `None`: none is kept.
    pub fn ends(&self) -> Option<Duration> {
        match self.loss? {
            Loss::Kept(since) => Some(since + self.lasting),
            Loss::Left => None,
        }
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
        let mut grace = TagGrace { lasting: s(30), loss: None };
        assert!(!grace.may_go(s(1000)), "nothing is known of a loss yet");
        grace.saw(s(100), true, true);
        grace.saw(s(110), true, true);
        assert_eq!((grace.ends(), grace.may_go(s(129)), grace.may_go(s(130))), (Some(s(130)), false, true));
        // It came back at the last moment, and goes again.
        grace.saw(s(129), false, false);
        assert_eq!(grace.ends(), None);
        grace.saw(s(131), true, true);
        assert_eq!((grace.may_go(s(160)), grace.may_go(s(161))), (false, true));
    }

    #[test]
    fn what_might_go_and_could_not_does_not_wait_again_while_the_loss_lasts() {
        let mut grace = TagGrace { lasting: s(30), loss: None };
        grace.saw(s(100), true, true);
        for now in [130, 131, 500] {
            assert!(grace.may_go(s(now)));
            grace.saw(s(now), true, false);
            assert_eq!(grace.ends(), None, "nothing is kept any more");
        }
        grace.saw(s(501), false, false);
        assert!(!grace.may_go(s(1000)), "the next loss is another one");
        // What a person has configured did not wait, nor does it where it could not be written.
        grace.saw(s(1000), true, false);
        assert!(grace.may_go(s(1001)));
    }

    #[test]
    fn without_a_time_they_go_at_once() {
        assert!(TagGrace::default().may_go(s(0)));
    }
}
