//! How a card is at one moment, in base units.
//!
//! A value that is absent, unsupported or unreadable is `None` or not in its list. Why a file that is there gave nothing
//! stands in [`CardReadings::faults`].

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;

use crate::Unknown;

/// Runtime power management's word for a function's state (Documentation/ABI/testing/sysfs-devices-power), in its folder.
pub const POWER_STATE: &str = "power/runtime_status";

/// Whether reading amdgpu's files would wake a card in this state.
#[must_use]
pub fn is_asleep(power_state: &str) -> bool {
    matches!(power_state, "suspended" | "suspending")
}

/// The readings of a card. Its partitions have [`PartitionReadings`] of their own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CardReadings {
    /// `power/runtime_status`: `active`, `suspended`, `suspending`, `resuming`, `error`, `unsupported`. Nothing else is
    /// read of a card that is suspended.
    pub power_state: Option<String>,
    /// Whether the card works in the system's memory, as an APU does. `None` where no file answers that.
    ///
    /// VRAM of 0 bytes marks an APU (an MI300A, whose `gpu_metrics` has format 1), as do formats 2 and 3.
    /// amdgpu_pm.c gives hwmon's `vddnb` to APUs alone, and `mclk` and `pcie_bw` to no APU but the MI300A.
    pub is_apu: Option<bool>,
    pub temperatures: Vec<Temperature>,
    pub power: Power,
    /// The firmware's count, which begins at an unknown time.
    pub energy_joules: Option<f64>,
    pub clocks: Vec<Clock>,
    /// 0 to 100.
    pub busy_percent: Option<f64>,
    /// How busy the memory controller is, 0 to 100.
    pub memory_busy_percent: Option<f64>,
    pub engines: Vec<Engine>,
    pub memory: Vec<MemoryPool>,
    pub voltages: Vec<Voltage>,
    pub fans: Vec<Fan>,
    pub pcie: Pcie,
    pub ras: Vec<RasBlock>,
    pub retired_pages: Option<RetiredPages>,
    pub xgmi: Xgmi,
    pub throttle: Throttle,
    /// Whether the kernel holds a dump of a hang of this card (/sys/class/devcoredump); `None` where the
    /// kernel makes no dumps.
    pub hang: Option<bool>,
    pub vbios_version: Option<String>,
    /// Name and version, as `fw_version/` has them: `("smc", "0x00550000")`.
    pub firmware: Vec<(String, String)>,
    /// The partitions of a partitioned card, in the order of `gpu_metrics`.
    pub partitions: Vec<PartitionReadings>,
    pub faults: Vec<Fault>,
}

/// A file that is there and gave no value, or not all of its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Beneath the Root: `/sys/bus/pci/devices/0000:64:00.0/gpu_metrics`.
    pub file: PathBuf,
    pub reason: Unknown,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Temperature {
    /// The kernel's label: `edge`, `junction`, `mem`; of `gpu_metrics` beyond those: `vrgfx`, `vrsoc`, `vrmem`, `hbm0`….
    pub sensor: String,
    pub celsius: Option<f64>,
    pub critical_celsius: Option<f64>,
    pub emergency_celsius: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Power {
    pub watts: Option<f64>,
    pub cap_watts: Option<f64>,
    pub cap_default_watts: Option<f64>,
    pub cap_min_watts: Option<f64>,
    pub cap_max_watts: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// The driver's name: `sclk`, `mclk`, `fclk`, `socclk`, `vclk`, `dclk`.
    pub domain: Cow<'static, str>,
    /// The number of the XCC or engine, where the card has several.
    pub instance: Option<u32>,
    pub hertz: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Engine {
    /// `gfx`, `vcn`, `jpeg`.
    pub name: Cow<'static, str>,
    pub instance: Option<u32>,
    /// 0 to 1.
    pub busy: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPool {
    /// `vram`, `visible_vram`, `gtt`.
    pub pool: Cow<'static, str>,
    pub total_bytes: Option<u64>,
    pub used_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Voltage {
    /// hwmon's label, `vddgfx` or `vddnb`; of `gpu_metrics` `vddgfx`, `soc`, `mem`.
    pub rail: String,
    pub volts: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fan {
    /// hwmon's number of the fan, from 1.
    pub number: u32,
    pub rpm: Option<f64>,
    pub max_rpm: Option<f64>,
}

/// Counters are the hardware's or the firmware's: they need not begin at 0 when the driver loads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Pcie {
    /// Transfers per second of a lane.
    pub speed: Option<f64>,
    pub max_speed: Option<f64>,
    pub width: Option<u32>,
    pub max_width: Option<u32>,
    /// Traffic in both directions.
    pub bytes_per_second: Option<f64>,
    pub replays: Option<u64>,
    pub replay_rollovers: Option<u64>,
    pub naks_sent: Option<u64>,
    pub naks_received: Option<u64>,
    pub recoveries: Option<u64>,
}

/// At most so much a card received and sent in one second: packets times their maximum payload.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PcieTraffic {
    pub received_bytes_per_second: f64,
    pub sent_bytes_per_second: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RasBlock {
    /// `umc`, `sdma`, `gfx`, `mmhub`, `pcie_bif`, `xgmi_wafl`….
    pub block: String,
    pub correctable: Option<u64>,
    pub deferred: Option<u64>,
    pub uncorrectable: Option<u64>,
}

/// Bad pages of VRAM (`ras/gpu_vram_bad_pages`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredPages {
    pub retired: u64,
    pub pending: u64,
    pub unreservable: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Xgmi {
    pub links: Vec<XgmiLink>,
    /// The number of lanes of a link.
    pub width: Option<u32>,
    /// Bits per second of a lane.
    pub speed: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct XgmiLink {
    pub link: u32,
    pub up: Option<bool>,
    /// The firmware's count, which begins at an unknown time.
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// Whether the firmware limits the clocks now because of `thermal`, `power`, `current` or `other`. A
    /// cause is missing where the firmware does not report it, or not reliably.
    pub status: Vec<(Cow<'static, str>, bool)>,
    /// Firmware samples in which a limit was active: `prochot`, `power`, `socket_thermal`, `vr_thermal`, `hbm_thermal`.
    pub residency: Vec<(Cow<'static, str>, u64)>,
    /// Firmware samples taken.
    pub samples: Option<u64>,
}

/// What a partition reports beside its card: `xcp/xcp_metrics`, and for the first partition its share of the
/// card's `gpu_metrics`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PartitionReadings {
    pub busy_percent: Option<f64>,
    pub clocks: Vec<Clock>,
    pub engines: Vec<Engine>,
    pub faults: Vec<Fault>,
}

impl Fault {
    /// Whether a reading that stands in files of these names is missing because of this fault. `*` stands for any text.
    #[must_use]
    pub fn explains(&self, files: &[&str]) -> bool {
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        let is_it = |file: &&str| match file.split_once('*') {
            Some((start, end)) => name.starts_with(start) && name.ends_with(end),
            None => name == *file,
        };
        // Where the power state is not known, nothing more is read.
        files.iter().any(is_it) || self.file.ends_with(POWER_STATE)
    }
}

impl CardReadings {
    /// Whether only the power state was read: more would wake the card, or might where the state is not
    /// known.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        match &self.power_state {
            Some(state) => is_asleep(state),
            // A kernel without the file suspends no card.
            None => self.faults.iter().any(|fault| fault.file.ends_with(POWER_STATE)),
        }
    }

    /// The memory that the card works in: VRAM, on an APU GTT. An APU's VRAM is a small part of the system's memory that
    /// firmware sets aside.
    #[must_use]
    pub fn own_memory(&self) -> Option<&MemoryPool> {
        let own = if self.is_apu? { "gtt" } else { "vram" };
        self.memory.iter().find(|it| it.pool == own)
    }
}
