//! How a card is now: what sysfs, hwmon and `gpu_metrics` say of it, in base units.
//!
//! A value that is absent, unsupported or unreadable is `None` or not in its list. Why a file that is there gave nothing
//! stands in [`CardReadings::faults`].
//!
//! Where two files say the same, the first of these that has a value counts: hwmon and the card's own small files,
//! `gpu_metrics`, `pp_dpm_*`. Replays are the other way round: see pcie.rs. No file is read twice.

mod hwmon;
mod levels;
mod metrics;
pub(crate) mod pcie;
mod ras;
mod source;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use root::Root;

use crate::Address;
use crate::attribute::{self, Unknown};
use crate::gpu_metrics::GpuMetrics;
use crate::pci;

pub use pcie::{PcieTraffic, pcie_traffic};

use source::Source;

/// One card. Its partitions have [`PartitionReadings`] of their own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CardReadings {
    /// `power/runtime_status`: `active`, `suspended`, `suspending`, `resuming`, `error`, `unsupported`. Nothing else is
    /// read of a card that is suspended.
    pub power_state: Option<String>,
    /// Whether the card works in the system's memory, as an APU does. `None` where that cannot be told.
    ///
    /// VRAM of 0 bytes says so (an MI300A, whose `gpu_metrics` has format 1), as do formats 2 and 3. amdgpu_pm.c gives hwmon's
    /// `vddnb` to APUs alone, and `mclk` and `pcie_bw` to no other APU than an MI300A.
    pub is_apu: Option<bool>,
    pub temperatures: Vec<Temperature>,
    pub power: Power,
    /// The firmware's count; where it began is not said.
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
    /// Whether the kernel holds a dump of a hang of this card (/sys/class/devcoredump); `None` where it makes none.
    pub hang: Option<bool>,
    pub vbios_version: Option<String>,
    /// Name and version, as `fw_version/` has them: `("smc", "0x00550000")`.
    pub firmware: Vec<(String, String)>,
    /// What `gpu_metrics` says of each partition of a partitioned card, in their order: see [`CardReadings::partition`].
    pub partitions: Vec<PartitionReadings>,
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

/// Counters are the hardware's or the firmware's: they need not begin at 0 when the driver loads.
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XgmiLink {
    pub link: u32,
    pub up: Option<bool>,
    /// The firmware's count; where it began is not said.
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Throttle {
    /// Whether the firmware limits the clocks now, by `thermal`, `power`, `current`, `other`. What it does not say, or not so
    /// that it can be believed, is left out.
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

/// Firmware, RAS blocks, sensors of a kind: drivers have less than half as many.
const MOST: usize = 64;

impl CardReadings {
    /// Reads a card that amdgpu drives. Each file is read once. `pcie_bw` never is, for it blocks for a second; nor is
    /// `xgmi_error`, whose read clears the state in the hardware (`amdgpu_xgmi_show_error`).
    #[must_use]
    pub fn read(root: &Root, address: Address) -> Self {
        let mut source = Source::new(root, pci::folder(address), "gpu_metrics");
        let state = |text: &str| pci::is_power_state(text).then(|| text.to_owned());
        let power_state = source.parsed(pci::POWER_STATE, "state of power", state);
        let mut card = Self { power_state, faults: source.faults.clone(), ..Self::default() };
        if !card.is_suspended() {
            card.read_awake(&mut source);
            card.hang = hang(root, address);
        }
        card.faults = source.faults;
        card
    }

    /// Whether nothing but its power state was read: reading more would wake it, or might where the state is not known.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        match &self.power_state {
            Some(state) => pci::is_asleep(state),
            // A kernel without the file suspends no card.
            None => self.faults.iter().any(|fault| fault.file.ends_with(pci::POWER_STATE)),
        }
    }

    /// One of this card's partitions, by its place and its render node's name. Where the kernel gives it no file of its own,
    /// the card's file says what it says of it.
    #[must_use]
    pub fn partition(&self, root: &Root, id: u32, render: &str) -> PartitionReadings {
        if self.is_suspended() {
            return PartitionReadings::default();
        }
        let own = PartitionReadings::read(root, render);
        let cards = usize::try_from(id).ok().and_then(|id| self.partitions.get(id));
        match cards {
            Some(cards) if own.engines.is_empty() => {
                PartitionReadings { clocks: own.clocks, faults: own.faults, ..cards.clone() }
            }
            _ => own,
        }
    }

    fn read_awake(&mut self, source: &mut Source<'_>) {
        hwmon::read(source, self);
        self.busy_percent = source.percent("gpu_busy_percent");
        self.memory_busy_percent = source.percent("mem_busy_percent");
        let vcn = source.percent("vcn_busy_percent");
        self.engines.extend(vcn.map(|busy| Engine { name: "vcn", instance: None, busy: busy / 100.0 }));
        for (pool, file) in [("vram", "vram"), ("visible_vram", "vis_vram"), ("gtt", "gtt")] {
            let total_bytes = source.number(&format!("mem_info_{file}_total"));
            let used_bytes = source.number(&format!("mem_info_{file}_used"));
            if total_bytes.or(used_bytes).is_some() {
                self.memory.push(MemoryPool { pool, total_bytes, used_bytes });
            }
        }
        self.pcie = pcie::read(source);
        (self.ras, self.retired_pages) = ras::read(source);
        self.vbios_version = source.text("vbios_version");
        let names = source.names("fw_version").into_iter();
        for name in names.filter(|name| name.ends_with("_fw_version")).take(MOST) {
            let firmware = name.trim_end_matches("_fw_version");
            let version = source.text(&format!("fw_version/{name}"));
            // The driver lists firmware that this card has not as version 0 (amdgpu_ucode.c).
            let version = version.filter(|version| version != "0x00000000");
            self.firmware.extend(version.map(|version| (firmware.to_owned(), version)));
        }
        let metrics = source.metrics(GpuMetrics::decode);
        self.is_apu = self.tell_apu(metrics.as_ref(), source);
        if let Some(metrics) = metrics {
            metrics::fill(&metrics, self, source);
        }
        levels::fill(source, &mut self.clocks);
    }

    /// By what hwmon and the memory's files gave, before `metrics` fills in more.
    fn tell_apu(&self, metrics: Option<&GpuMetrics>, source: &Source<'_>) -> Option<bool> {
        let vram = self.memory.iter().find(|it| it.pool == "vram").and_then(|it| it.total_bytes);
        let format = metrics.map(|metrics| metrics.version.0);
        if vram == Some(0)
            || format.is_some_and(|format| format > 1)
            || self.voltages.iter().any(|it| it.rail == "vddnb")
        {
            return Some(true);
        }
        let has_own = format == Some(1)
            || self.clocks.iter().any(|it| it.domain == "mclk")
            || source.is_there("pcie_bw");
        has_own.then_some(false)
    }
}

impl PartitionReadings {
    /// Reads a partition's own file by its render node's name, `renderD129`; older kernels have none. The file wakes a
    /// suspended card: [`CardReadings::partition`] looks first.
    #[must_use]
    pub fn read(root: &Root, render: &str) -> Self {
        let device = Path::new("/sys/class/drm").join(render).join("device");
        let mut source = Source::new(root, device, "xcp/xcp_metrics");
        let metrics = source.metrics(GpuMetrics::decode_partition);
        let readings = metrics.map(|metrics| metrics::of_partition(&metrics, &mut source));
        Self { faults: source.faults, ..readings.unwrap_or_default() }
    }
}

/// Whether one of the kernel's dumps is of this card (drivers/base/devcoredump.c). `None` where the kernel makes none:
/// without the class, or with its `disabled` set; and where it is not known whose a dump is.
fn hang(root: &Root, address: Address) -> Option<bool> {
    let folder = Path::new("/sys/class/devcoredump");
    let names = root.list(folder).ok()?;
    let dumps = names.iter().filter(|name| *name != "disabled");
    let device = |name: &OsString| pci::last_component(root, &folder.join(name).join("failing_device"));
    let devices: Vec<Option<String>> = dumps.map(device).collect();
    if devices.contains(&Some(address.to_string())) {
        return Some(true);
    }
    let disabled = attribute::text(root, &folder.join("disabled")).ok()?;
    (disabled == "0" && !devices.contains(&None)).then_some(false)
}
