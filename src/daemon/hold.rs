//! A GPU that resets and comes back must not take a worker's tags away and bring them again: each of the two is taken in
//! by a restart of the worker, and steps that ask for a GPU find none meanwhile. So the loss of tags has to last.

use std::time::Duration;

/// Whether tags are about to go, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
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

impl Hold {
    #[must_use]
    pub fn new(lasting: Duration) -> Self {
        Self { lasting, loss: None }
    }

    /// The same by another time.
    pub fn last(&mut self, lasting: Duration) {
        self.lasting = lasting;
    }

    /// Whether tags may go now. What might go once and is lost still does not wait again.
    #[must_use]
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
    #[must_use]
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
        let mut hold = Hold::new(s(30));
        assert!(!hold.may_go(s(1000)), "nothing is known of a loss yet");
        hold.saw(s(100), true, true);
        hold.saw(s(110), true, true);
        assert_eq!((hold.ends(), hold.may_go(s(129)), hold.may_go(s(130))), (Some(s(130)), false, true));
        // It came back at the last moment, and goes again.
        hold.saw(s(129), false, false);
        assert_eq!(hold.ends(), None);
        hold.saw(s(131), true, true);
        assert_eq!((hold.may_go(s(160)), hold.may_go(s(161))), (false, true));
    }

    #[test]
    fn what_might_go_and_could_not_does_not_wait_again_while_the_loss_lasts() {
        let mut hold = Hold::new(s(30));
        hold.saw(s(100), true, true);
        for now in [130, 131, 500] {
            assert!(hold.may_go(s(now)));
            hold.saw(s(now), true, false);
            assert_eq!(hold.ends(), None, "nothing is kept any more");
        }
        hold.saw(s(501), false, false);
        assert!(!hold.may_go(s(1000)), "the next loss is another one");
        // What a person has configured did not wait, nor does it where it could not be written.
        hold.saw(s(1000), true, false);
        assert!(hold.may_go(s(1001)));
    }

    #[test]
    fn without_a_time_they_go_at_once() {
        assert!(Hold::new(s(0)).may_go(s(0)));
    }
}
