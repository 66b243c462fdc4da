//! How a card is now: what sysfs, hwmon and `gpu_metrics` say of it, in base units.
//!
//! A value that is absent, unsupported or unreadable is `None` or not in its list. Why a file that is there gave nothing
//! stands in [`CardReadings::faults`].

use std::path::PathBuf;

use root::Root;

use crate::address::Address;
use crate::attribute::Unknown;

/// One card. Its partitions have [`PartitionReadings`] of their own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CardReadings {
    /// `power/runtime_status`: `active`, `suspended`, `suspending`, `resuming`, `error`, `unsupported`. Nothing else is
    /// read of a card that is suspended.
    pub power_state: Option<String>,
    /// Whether the card is an APU: its `gpu_metrics` has format 2 or 3. `None` where that cannot be told.
    pub is_apu: Option<bool>,
    pub temperatures: Vec<Temperature>,
    pub power: Power,
    /// Since the driver was loaded.
    pub energy_joules: Option<f64>,
    pub clocks: Vec<Clock>,
    /// 0 to 100.
    pub busy_percent: Option<f64>,
    /// Of the memory controller, 0 to 100.
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
    /// Whether the kernel holds a dump of a hang of this card (/sys/class/devcoredump); `None` where it holds none, for then
    /// nothing is known.
    pub hang: Option<bool>,
    pub vbios_version: Option<String>,
    /// Name and version, as `fw_version/` has them: `("smc", "0x00550000")`.
    pub firmware: Vec<(String, String)>,
    pub faults: Vec<Fault>,
}

/// A file that is there and gave no value, or not all of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Beneath the Root: `/sys/bus/pci/devices/0000:64:00.0/gpu_metrics`.
    pub file: PathBuf,
    pub reason: Unknown,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Temperature {
    /// The kernel's label: `edge`, `junction`, `mem`; of `gpu_metrics` beyond those: `vrgfx`, `vrsoc`, `vrmem`, `hbm0`….
    pub sensor: String,
    pub celsius: Option<f64>,
    pub critical_celsius: Option<f64>,
    pub emergency_celsius: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Power {
    pub watts: Option<f64>,
    pub cap_watts: Option<f64>,
    pub cap_default_watts: Option<f64>,
    pub cap_min_watts: Option<f64>,
    pub cap_max_watts: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Clock {
    /// The driver's name: `sclk`, `mclk`, `fclk`, `socclk`, `vclk`, `dclk`.
    pub domain: &'static str,
    /// Where there are several: the XCC's or the engine's number.
    pub instance: Option<u32>,
    pub hertz: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Engine {
    /// `gfx`, `vcn`, `jpeg`.
    pub name: &'static str,
    pub instance: Option<u32>,
    /// 0 to 1.
    pub busy: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPool {
    /// `vram`, `visible_vram`, `gtt`.
    pub pool: &'static str,
    pub total_bytes: Option<u64>,
    pub used_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Voltage {
    /// `vddgfx`, `vddnb`, `soc`, `mem`.
    pub rail: String,
    pub volts: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fan {
    /// As hwmon counts them, from 1.
    pub number: u32,
    pub rpm: Option<f64>,
    pub max_rpm: Option<f64>,
}

/// Counters are since the driver was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pcie {
    /// Transfers per second of a lane.
    pub speed: Option<f64>,
    pub max_speed: Option<f64>,
    pub width: Option<u32>,
    pub max_width: Option<u32>,
    /// In both directions.
    pub bytes_per_second: Option<f64>,
    pub replays: Option<u64>,
    pub replay_rollovers: Option<u64>,
    pub naks_sent: Option<u64>,
    pub naks_received: Option<u64>,
    pub recoveries: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RasBlock {
    /// `umc`, `sdma`, `gfx`, `mmhub`, `pcie_bif`, `xgmi_wafl`….
    pub block: String,
    pub correctable: Option<u64>,
    pub deferred: Option<u64>,
    pub uncorrectable: Option<u64>,
}

/// Bad pages of VRAM (`ras/gpu_vram_bad_pages`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetiredPages {
    pub retired: u64,
    pub pending: u64,
    pub unreservable: u64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Xgmi {
    pub links: Vec<XgmiLink>,
    /// Lanes.
    pub width: Option<u32>,
    /// Bits per second of a lane.
    pub speed: Option<f64>,
    /// `xgmi_error`: 0 none, 1 one, 2 several since the last read.
    pub error: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XgmiLink {
    pub link: u32,
    pub up: Option<bool>,
    /// Since the driver was loaded.
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Throttle {
    /// Whether the firmware limits the clocks now, by `thermal`, `power`, `current`, `other`; empty where it does not say.
    pub status: Vec<(&'static str, bool)>,
    /// Firmware samples in which a limit was active: `prochot`, `power`, `socket_thermal`, `vr_thermal`, `hbm_thermal`.
    pub residency: Vec<(&'static str, u64)>,
    /// Firmware samples taken.
    pub samples: Option<u64>,
}

/// One partition beyond what is its card's: `xcp/xcp_metrics`, and the first partition's share of the card's `gpu_metrics`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PartitionReadings {
    pub busy_percent: Option<f64>,
    pub clocks: Vec<Clock>,
    pub engines: Vec<Engine>,
    pub faults: Vec<Fault>,
}

impl CardReadings {
    /// Reads a card that amdgpu drives. Each file is read once; `pcie_bw`, which blocks for a second, never.
    #[must_use]
    pub fn read(_root: &Root, _address: Address) -> Self {
        Self::default()
    }
}

impl PartitionReadings {
    /// Reads a partition by its render node's name, `renderD129`.
    #[must_use]
    pub fn read(_root: &Root, _render: &str) -> Self {
        Self::default()
    }
}
