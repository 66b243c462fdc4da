//! A GPU that resets and comes back must not remove a worker's tags and add them again: each of the two restarts the
//! worker, and steps that ask for a GPU find none meanwhile. So a loss of tags has to last.

use std::time::Duration;

use config::Config;

use crate::run::TagLoss;

/// Whether two configurations give a machine's GPUs equal tags. If not, a person decided so, and tags change at once.
pub fn decide_alike(one: &Config, other: &Config) -> bool {
    (&one.gpus, one.needs_gpu) == (&other.gpus, other.needs_gpu)
        && one.devices == other.devices
        && one.tags == other.tags
        && one.concourse == other.concourse
}

/// Whether a worker is about to lose tags, because their GPUs are gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TagGrace {
    #[default]
    NoLoss,
    /// The worker would lose tags, and the daemon has kept them since this time.
    Kept(Duration),
    /// Tags may go, and are there still: the daemon may change nothing here, or could not.
    Left,
}

impl TagGrace {
    /// Whether tags may go now. `lasting`: for so long a loss has to last. A loss that has lasted so long once does not
    /// wait again.
    pub fn may_go(self, now: Duration, lasting: Duration) -> bool {
        lasting.is_zero() || self == Self::Left || self.ends(lasting).is_some_and(|ends| ends <= now)
    }

    /// Notes the result of a look.
    pub fn saw(&mut self, now: Duration, loss: TagLoss) {
        *self = match (loss, *self) {
            (TagLoss::NoLoss, _) => Self::NoLoss,
            (TagLoss::Held, Self::NoLoss) => Self::Kept(now),
            (TagLoss::Held, before) => before,
            (TagLoss::Due, _) => Self::Left,
        };
    }

    /// When the daemon may remove tags that it keeps.
    pub fn ends(self, lasting: Duration) -> Option<Duration> {
        match self {
            Self::Kept(since) => Some(since + lasting),
            Self::NoLoss | Self::Left => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTING: Duration = Duration::from_secs(30);

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn tags_go_once_their_loss_has_lasted_and_a_return_begins_anew() {
        let mut grace = TagGrace::default();
        assert!(!grace.may_go(s(1000), LASTING), "nothing is known of a loss yet");
        grace.saw(s(100), TagLoss::Held);
        grace.saw(s(110), TagLoss::Held);
        assert_eq!(
            (grace.ends(LASTING), grace.may_go(s(129), LASTING), grace.may_go(s(130), LASTING)),
            (Some(s(130)), false, true)
        );
        // The GPU came back at the last moment, and goes again.
        grace.saw(s(129), TagLoss::NoLoss);
        assert_eq!(grace.ends(LASTING), None);
        grace.saw(s(131), TagLoss::Held);
        assert_eq!((grace.may_go(s(160), LASTING), grace.may_go(s(161), LASTING)), (false, true));
    }

    #[test]
    fn what_might_go_and_could_not_does_not_wait_again_while_the_loss_lasts() {
        let mut grace = TagGrace::default();
        grace.saw(s(100), TagLoss::Held);
        for now in [130, 131, 500] {
            assert!(grace.may_go(s(now), LASTING));
            grace.saw(s(now), TagLoss::Due);
            assert_eq!(grace.ends(LASTING), None, "nothing is kept any more");
        }
        grace.saw(s(501), TagLoss::NoLoss);
        assert!(!grace.may_go(s(1000), LASTING), "the next loss is another one");
        // What a person has configured did not wait, nor does it where it could not be written.
        grace.saw(s(1000), TagLoss::Due);
        assert!(grace.may_go(s(1001), LASTING));
    }

    #[test]
    fn without_a_time_they_go_at_once() {
        assert!(TagGrace::default().may_go(s(0), Duration::ZERO));
    }
}
