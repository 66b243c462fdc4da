//! Moments that no setting of the clock moves.

use nix::time::{ClockId, clock_gettime};
use root::Root;
use serde::{Deserialize, Serialize};

/// The kernel's id of this boot (Documentation/admin-guide/sysctl/kernel.rst, random).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A moment of one boot: the clock of the day may be set between two looks, this one never is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uptime {
    /// The kernel's boot id.
    pub boot: String,
    /// Microseconds of CLOCK_MONOTONIC, by which systemd reports when a unit began to run.
    pub us: u64,
}

impl Uptime {
    /// Now; `None` where the boot is not known: beneath another Root than `/`.
    #[must_use]
    pub fn now(root: &Root) -> Option<Self> {
        let boot = Self::boot(root)?;
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).ok()?;
        let (seconds, ns) = (u64::try_from(now.tv_sec()).ok()?, u64::try_from(now.tv_nsec()).ok()?);
        Some(Self { boot, us: seconds * 1_000_000 + ns / 1_000 })
    }

    /// The kernel's id of this boot; `None` where it is not known.
    #[must_use]
    pub fn boot(root: &Root) -> Option<String> {
        Some(root.read_text(BOOT_ID, 64).ok()?.trim().to_owned())
    }
}
