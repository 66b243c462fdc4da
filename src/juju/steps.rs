//! What a hook is at, as often as Juju should hear of it: each telling is a call to the controller.

use std::time::{Duration, Instant};

use reconcile::{Progress, Step, Verb};

/// Between two tellings: apt tells a hundred steps in a minute.
const PAUSE: Duration = Duration::from_secs(5);

/// What was told last, and when.
#[derive(Debug, Default)]
pub struct Steps {
    is_silent: bool,
    last: Option<(Instant, String)>,
}

impl Steps {
    /// Tells nothing any more: a tool that does not answer takes a minute each time, and work must go on.
    pub fn silence(&mut self) {
        self.is_silent = true;
    }

    /// What is to be told now of this progress, if anything: the first step at once, a later one when it is another and
    /// the last telling was some time ago.
    pub fn hear(&mut self, progress: &Progress<'_>, now: Instant) -> Option<String> {
        let text = match progress {
            Progress::Begins(change) if matches!(change.change, Verb::Remove | Verb::Restore) => {
                format!("taking back {}", change.path.display())
            }
            Progress::Begins(change) => format!("{}: {}", change.path.display(), change.reason),
            Progress::Comes(change, Step { text, percent: None }) => {
                format!("{}: {text}", change.path.display())
            }
            Progress::Comes(change, Step { text, percent: Some(percent) }) => {
                format!("{}: {text} ({percent:.0} %)", change.path.display())
            }
            Progress::Waits(text) => text.clone(),
            Progress::Settles(effect) => effect.to_string(),
        };
        // What is waited for takes long, and is what somebody wants to see.
        let is_due = |(when, last): &(Instant, String)| {
            *last != text && (matches!(progress, Progress::Waits(_)) || now.duration_since(*when) >= PAUSE)
        };
        if self.is_silent || !self.last.as_ref().is_none_or(is_due) {
            return None;
        }
        self.last = Some((now, text.clone()));
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_is_told_at_once_and_the_others_now_and_then() {
        let mut steps = Steps::default();
        let begin = Instant::now();
        let reload = Progress::Settles(&reconcile::Effect::SystemdReload);
        let waits = |text: &str| Progress::Waits(text.to_owned());
        let mut at = |seconds, progress: &Progress<'_>| {
            steps.hear(progress, begin + Duration::from_secs(seconds)).is_some()
        };
        assert!(at(0, &reload));
        assert!(!at(9, &reload), "it was told");
        assert!(at(9, &waits("waiting for apt")));
        assert!(!at(10, &reload), "too early");
        assert!(at(10, &waits("waiting for the worker")), "a wait is told at once");
        assert!(at(15, &reload));
        steps.silence();
        assert_eq!(steps.hear(&waits("waiting for apt"), begin + Duration::from_secs(99)), None);
    }
}
