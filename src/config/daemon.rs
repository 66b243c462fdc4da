//! What is wanted of the daemon.

use std::time::Duration;

use serde::Deserialize;

use super::{Error, Restart, Source};

/// Often enough for a person, and seldom enough for a laptop.
const INTERVAL_S: std::ops::RangeInclusive<u32> = 10..=86_400;

/// Longer than any card takes to reset, and than a driver takes to be loaded again.
const LONGEST_SETTLE_S: u32 = 3600;

/// The daemon, `rocworker serve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Daemon {
    /// Whether there is to be a unit that runs it.
    pub unit: bool,
    /// Whether it changes anything, or only says what differs.
    pub enforce: bool,
    /// What it does with units whose configuration it has changed.
    pub restart: Restart,
    /// How often it looks though nothing was heard.
    pub interval: Duration,
    /// For how long GPUs must be gone before the worker loses tags for it.
    pub settle: Duration,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct DaemonDocument {
    unit: Option<bool>,
    enforce: Option<bool>,
    restart: Option<Restart>,
    interval_s: Option<u32>,
    settle_s: Option<u32>,
}

impl DaemonDocument {
    pub(super) fn check(self, source: &Source) -> Result<Daemon, Error> {
        let interval_s = self.interval_s.unwrap_or(300);
        if !INTERVAL_S.contains(&interval_s) {
            let (least, most) = (INTERVAL_S.start(), INTERVAL_S.end());
            let problem = format!("interval-s is not between {least} and {most} seconds");
            return Err(source.wrong("daemon.interval-s", None, problem));
        }
        let settle_s = self.settle_s.unwrap_or(30);
        if settle_s > LONGEST_SETTLE_S {
            let problem =
                format!("settle-s is more than {LONGEST_SETTLE_S} s: tags would name GPUs that are gone");
            return Err(source.wrong("daemon.settle-s", None, problem));
        }
        Ok(Daemon {
            unit: self.unit.unwrap_or(true),
            enforce: self.enforce.unwrap_or(true),
            restart: self.restart.unwrap_or(Restart::Never),
            interval: Duration::from_secs(interval_s.into()),
            settle: Duration::from_secs(settle_s.into()),
        })
    }
}
