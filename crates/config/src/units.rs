//! rocworker's own units: the one that runs before engines start, and the daemon.

use std::ops::RangeInclusive;
use std::time::Duration;

use reconcile::Restarts;
use serde::{Deserialize, Serialize};

use super::{Error, Managed, Off, Source};

/// Seconds. More than any driver takes, and as long as a person would wait for a machine that does not come up.
const WAIT_S: RangeInclusive<u32> = 0..=600;

/// Seconds. Often enough for a person, and seldom enough for a laptop.
const INTERVAL_S: RangeInclusive<u32> = 10..=86_400;

/// Seconds. Longer than any card takes to reset, and than a driver takes to be loaded again. Later, tags would name
/// GPUs that are gone.
const SETTLE_S: RangeInclusive<u32> = 0..=3600;

/// The unit that runs before engines start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boot {
    pub unit: Managed,
    /// How long the unit waits for GPUs that are still coming up, in seconds.
    pub wait_s: u32,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct BootDocument {
    unit: Option<bool>,
    wait_s: Option<u32>,
}

impl BootDocument {
    pub(super) fn check(self, gpus: Managed, source: &Source) -> Result<Boot, Error> {
        let unit = unit(self.unit, "boot.unit: false", gpus);
        let boot = Boot { unit, wait_s: self.wait_s.unwrap_or(30) };
        source.check_seconds("boot.wait-s", boot.wait_s, WAIT_S, "").map(|()| boot)
    }
}

/// Whether one of rocworker's units is managed. `off`: the key that turns it off, and its value.
pub(super) fn unit(written: Option<bool>, off: &'static str, gpus: Managed) -> Managed {
    Managed::of(written.unwrap_or(true).then_some(()), Off::Key(off)).needing(&gpus)
}

/// The daemon, `rocworker serve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Daemon {
    /// The unit that runs the daemon.
    pub unit: Managed,
    /// Whether the daemon repairs what differs, or only reports it.
    pub enforce: bool,
    /// What the daemon does with units whose configuration it has changed.
    pub restart: Restarts,
    /// How often the daemon looks at the machine without an event, in seconds.
    pub interval_s: u32,
    /// How long GPUs must be gone before the worker loses the tags that they gave it, in seconds.
    pub settle_s: u32,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct DaemonDocument {
    unit: Option<bool>,
    enforce: Option<bool>,
    restart: Option<Restarts>,
    interval_s: Option<u32>,
    settle_s: Option<u32>,
}

impl Daemon {
    #[must_use]
    pub fn interval(&self) -> Duration {
        Duration::from_secs(self.interval_s.into())
    }

    #[must_use]
    pub fn settle(&self) -> Duration {
        Duration::from_secs(self.settle_s.into())
    }
}

impl DaemonDocument {
    pub(super) fn check(self, gpus: Managed, source: &Source) -> Result<Daemon, Error> {
        let daemon = Daemon {
            unit: unit(self.unit, "daemon.unit: false", gpus),
            enforce: self.enforce.unwrap_or(true),
            restart: self.restart.unwrap_or(Restarts::Never),
            interval_s: self.interval_s.unwrap_or(300),
            settle_s: self.settle_s.unwrap_or(30),
        };
        source.check_seconds("daemon.interval-s", daemon.interval_s, INTERVAL_S, "")?;
        source.check_seconds("daemon.settle-s", daemon.settle_s, SETTLE_S, "").map(|()| daemon)
    }
}
