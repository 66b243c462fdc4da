//! Remembers what the exporter has logged of files that give no value: each scrape meets them again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A reason that comes back after this time is logged again.
const AGAIN: Duration = Duration::from_secs(3600);

/// The last reason of each file, with the time when a scrape last met it.
#[derive(Debug, Default)]
pub(crate) struct Reported(BTreeMap<PathBuf, (String, Instant)>);

impl Reported {
    /// The reasons among `faults` that are new, or have changed.
    pub(crate) fn news(&mut self, faults: Vec<(PathBuf, String)>, now: Instant) -> Vec<String> {
        self.0.retain(|_, (_, met)| now.duration_since(*met) < AGAIN);
        let mut news = Vec::new();
        for (file, reason) in faults {
            let before = self.0.insert(file, (reason.clone(), now));
            if before.is_none_or(|(before, _)| before != reason) {
                news.push(reason);
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_reported_once_and_again_when_it_changes_or_comes_back_after_an_hour() {
        let mut reported = Reported::default();
        let begin = Instant::now();
        let minutes = |minutes: u64| begin + Duration::from_secs(60 * minutes);
        let fault = |reason: &str| vec![(PathBuf::from("/a"), reason.to_owned())];
        for (at, reason, expected) in [
            (0, "a is empty", true),
            (1, "a is empty", false),
            (2, "a is no number", true),
            (50, "a is no number", false),
            (100, "a is no number", false),
            (159, "a is no number", false),
            (219, "a is no number", true),
        ] {
            assert_eq!(reported.news(fault(reason), minutes(at)).len(), usize::from(expected), "minute {at}");
        }
        assert_eq!(reported.news(Vec::new(), minutes(220)), Vec::<String>::new());
    }
}
