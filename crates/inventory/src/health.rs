//! /run/rocworker/health.json: how well each GPU is, as rocworker's daemon judges it. The wrapper and the exporter read it.

use serde::{Deserialize, Serialize};

use crate::PciAddress;

/// Of [`Health::schema_version`].
pub const SCHEMA_VERSION: u32 = 1;

/// Mode 0644.
pub const PATH: &str = "/run/rocworker/health.json";

/// Older than this, it says nothing of now: every GPU is unknown, and a quarantine lasts.
pub const FRESH_S: u64 = 60;

/// How far a file of the daemon's may be from the future, in seconds: the clock may be set between a write and a read.
const AHEAD_S: u64 = 5;

/// Whether a file of the daemon's says something of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    Fresh,
    Old,
    /// From the future, by so many seconds.
    Ahead(u64),
}

impl Age {
    /// Of what was written and is read at these times, in seconds since 1970, and counts for so many seconds.
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
    /// What could not be read for the machine as a whole, a sentence each: the kernel's log, mostly.
    pub unknown: Vec<String>,
}

/// One card, with all its partitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuHealth {
    pub pci: PciAddress,
    pub state: State,
    /// 0 to 100; `None` where the state is unknown.
    pub score: Option<u8>,
    /// Whether it hangs now; `None` where nothing says so or the contrary.
    pub hang: Option<bool>,
    pub deductions: Vec<Deduction>,
    /// What could not be judged, a sentence each.
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
    /// As health.json names it.
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

/// What a rule takes off the score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deduction {
    /// The rule's id.
    pub rule: String,
    /// 1 to 100.
    pub points: u8,
    /// What it means, a sentence.
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
    /// When it was last unhealthy, in seconds since 1970.
    pub unhealthy_at: u64,
    pub reason: String,
    /// The ids of the rules that then took the most points: it does not end while one of them cannot be judged.
    pub rules: Vec<String>,
}

impl Health {
    /// Whether it is of this time, in seconds since 1970.
    #[must_use]
    pub fn is_fresh(&self, now: u64) -> bool {
        is_fresh(self.written_at, now)
    }

    /// Whether it is known to be of another boot than this one.
    #[must_use]
    pub fn is_of_another_boot(&self, boot_id: Option<&str>) -> bool {
        are_different(self.boot_id.as_deref(), boot_id)
    }
}

/// Whether two boots are known not to be one.
#[must_use]
pub fn are_different(one: Option<&str>, other: Option<&str>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}

/// Whether a health file that was written and is read at these times, in seconds since 1970, says something of now.
#[must_use]
pub fn is_fresh(written_at: u64, now: u64) -> bool {
    Age::of(written_at, now, FRESH_S) == Age::Fresh
}
