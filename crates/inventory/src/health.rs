//! /run/rocworker/health.json: how well each GPU is, as rocworker's daemon judges it. The wrapper and the exporter read it.

use serde::{Deserialize, Serialize};

use crate::PciAddress;

/// The value of [`Health::schema_version`] that this version writes.
pub const SCHEMA_VERSION: u32 = 1;

/// The daemon writes the file with mode 0644.
pub const PATH: &str = "/run/rocworker/health.json";

/// Seconds after which the file no longer counts: every GPU is then unknown, and a quarantine lasts.
pub const FRESH_S: u64 = 60;

/// How many seconds a timestamp in a daemon's file may lie in the future: the clock may be set between the
/// write and the read.
const AHEAD_S: u64 = 5;

/// Whether a file that the daemon has written still counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    Fresh,
    Old,
    /// The file's timestamp lies this many seconds in the future.
    Ahead(u64),
}

impl Age {
    /// The age at `now` of a file that counts for `fresh_s` seconds after `written_at`. Times are in seconds
    /// since 1970.
    #[must_use]
    pub fn of(written_at: u64, now: u64, fresh_s: u64) -> Self {
        match written_at.checked_sub(now) {
            Some(ahead) if ahead > AHEAD_S => Self::Ahead(ahead),
            None if now - written_at > fresh_s => Self::Old,
            _ => Self::Fresh,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Seconds since 1970.
    pub written_at: u64,
    /// The boot in which it was written (/proc/sys/kernel/random/boot_id). A quarantine ends with its boot. `None` where
    /// the kernel did not say, and in a file of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// A card each, in the order of their addresses.
    pub gpus: Vec<GpuHealth>,
    /// Sentences on what could not be read for the machine as a whole: mostly the kernel's log.
    pub unknown: Vec<String>,
}

/// The health of one card with all its partitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuHealth {
    pub pci: PciAddress,
    pub state: State,
    /// 0 to 100; `None` where the state is unknown.
    pub score: Option<u8>,
    /// Whether the card hangs now; `None` where nothing answers that.
    pub hang: Option<bool>,
    pub deductions: Vec<Deduction>,
    /// Sentences on what could not be judged.
    pub unknown: Vec<String>,
    /// Why no container gets it unless the policy has no quarantine: it is unhealthy, or was a short while ago.
    pub quarantine: Option<Quarantine>,
    /// Why it cannot be leased just now: processes or memory are left on it.
    pub leftover: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Healthy,
    Degraded,
    Unhealthy,
    Unknown,
}

impl State {
    /// The state's name in health.json.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Unhealthy => "unhealthy",
            Self::Unknown => "unknown",
        }
    }
}

/// The points that one rule takes off the score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deduction {
    /// The rule's id.
    pub rule: String,
    /// 1 to 100.
    pub points: u8,
    /// A sentence on what the evidence means.
    pub reason: String,
    /// The reading with its value, or the kernel's line.
    pub evidence: String,
}

/// A GPU that was unhealthy stays out until it was not for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quarantine {
    /// Seconds since 1970.
    pub since: u64,
    /// When the GPU was last unhealthy, in seconds since 1970.
    pub unhealthy_at: u64,
    pub reason: String,
    /// The ids of the rules that then took the most points: it does not end while one of them cannot be judged.
    pub rules: Vec<String>,
}

impl Health {
    /// Whether the file still counts at `now`, in seconds since 1970.
    #[must_use]
    pub fn is_fresh(&self, now: u64) -> bool {
        is_fresh(self.written_at, now)
    }

    /// Whether the file is known to be from a boot other than `boot_id`.
    #[must_use]
    pub fn is_of_another_boot(&self, boot_id: Option<&str>) -> bool {
        are_different(self.boot_id.as_deref(), boot_id)
    }
}

/// Whether both boot ids are known and differ.
#[must_use]
pub fn are_different(one: Option<&str>, other: Option<&str>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}

/// Whether a health file written at `written_at` still counts at `now`, both in seconds since 1970.
#[must_use]
pub fn is_fresh(written_at: u64, now: u64) -> bool {
    Age::of(written_at, now, FRESH_S) == Age::Fresh
}
