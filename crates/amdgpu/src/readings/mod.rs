//! Reads how a card is now from sysfs, hwmon and `gpu_metrics`.
//!
//! Where several files have a value, the first of these counts: hwmon and the card's own small files,
//! `gpu_metrics`, `pp_dpm_*`. For replays the order is reversed: see pcie.rs. No file is read twice.

mod hwmon;
mod levels;
mod metrics;
pub(crate) mod pcie;
mod ras;
mod source;

use std::ffi::OsString;
use std::path::Path;

use inventory::PciAddress;
use inventory::readings::{CardReadings, Engine, MemoryPool, POWER_STATE, PartitionReadings};
use root::Root;

use crate::gpu_metrics::GpuMetrics;
use crate::{attribute, pci};

pub use pcie::pcie_traffic;

use source::Source;

/// Firmware, RAS blocks, sensors of a kind: drivers have less than half as many.
const MOST: usize = 64;

/// Reads a card that amdgpu drives. Each file is read once. `pcie_bw` never is, for it blocks for a second; nor is
/// `xgmi_error`, whose read clears the state in the hardware (`amdgpu_xgmi_show_error`).
#[must_use]
pub fn of_card(root: &Root, address: PciAddress) -> CardReadings {
    let mut source = Source::new(root, pci::folder(address), "gpu_metrics");
    let state = |text: &str| pci::is_power_state(text).then(|| text.to_owned());
    let power_state = source.parsed(POWER_STATE, "state of power", state);
    let mut card = CardReadings { power_state, faults: source.faults.clone(), ..CardReadings::default() };
    if !card.is_suspended() {
        read_awake(&mut card, &mut source);
        card.hang = hang(root, address);
    }
    card.faults = source.faults;
    card
}

/// Reads a partition of a card that was read before, by its place and its render node's name, `renderD129`. Where the kernel
/// gives the partition no file of its own, the card's file says what it says of it.
#[must_use]
pub fn of_partition(root: &Root, card: &CardReadings, id: u32, render: &str) -> PartitionReadings {
    // The partition's file wakes a suspended card.
    if card.is_suspended() {
        return PartitionReadings::default();
    }
    let own = own_file(root, render);
    let cards = usize::try_from(id).ok().and_then(|id| card.partitions.get(id));
    match cards {
        Some(cards) if own.engines.is_empty() => {
            PartitionReadings { clocks: own.clocks, faults: own.faults, ..cards.clone() }
        }
        _ => own,
    }
}

/// Reads a partition's own file; older kernels have none.
fn own_file(root: &Root, render: &str) -> PartitionReadings {
    let device = Path::new("/sys/class/drm").join(render).join("device");
    let mut source = Source::new(root, device, "xcp/xcp_metrics");
    let metrics = source.metrics(GpuMetrics::decode_partition);
    let readings = metrics.map(|metrics| metrics::of_partition(&metrics, &mut source));
    PartitionReadings { faults: source.faults, ..readings.unwrap_or_default() }
}

fn read_awake(card: &mut CardReadings, source: &mut Source<'_>) {
    hwmon::read(source, card);
    card.busy_percent = source.percent("gpu_busy_percent");
    card.memory_busy_percent = source.percent("mem_busy_percent");
    let vcn = source.percent("vcn_busy_percent");
    card.engines.extend(vcn.map(|busy| Engine { name: "vcn".into(), instance: None, busy: busy / 100.0 }));
    for (pool, file) in [("vram", "vram"), ("visible_vram", "vis_vram"), ("gtt", "gtt")] {
        let total_bytes = source.number(&format!("mem_info_{file}_total"));
        let used_bytes = source.number(&format!("mem_info_{file}_used"));
        if total_bytes.or(used_bytes).is_some() {
            card.memory.push(MemoryPool { pool: pool.into(), total_bytes, used_bytes });
        }
    }
    card.pcie = pcie::read(source);
    (card.ras, card.retired_pages) = ras::read(source);
    card.vbios_version = source.text("vbios_version");
    let names = source.names("fw_version").into_iter();
    for name in names.filter(|name| name.ends_with("_fw_version")).take(MOST) {
        let firmware = name.trim_end_matches("_fw_version");
        let version = source.text(&format!("fw_version/{name}"));
        // The driver lists firmware that this card has not as version 0 (amdgpu_ucode.c).
        let version = version.filter(|version| version != "0x00000000");
        card.firmware.extend(version.map(|version| (firmware.to_owned(), version)));
    }
    let metrics = source.metrics(GpuMetrics::decode);
    card.is_apu = is_apu(card, metrics.as_ref(), source);
    if let Some(metrics) = metrics {
        metrics::fill(&metrics, card, source);
    }
    levels::fill(source, &mut card.clocks);
}

/// Decides from the readings of hwmon and of the memory's files, before `metrics` adds more of them.
fn is_apu(card: &CardReadings, metrics: Option<&GpuMetrics>, source: &Source<'_>) -> Option<bool> {
    let vram = card.memory.iter().find(|it| it.pool == "vram").and_then(|it| it.total_bytes);
    let format = metrics.map(|metrics| metrics.version.0);
    if vram == Some(0)
        || format.is_some_and(|format| format > 1)
        || card.voltages.iter().any(|it| it.rail == "vddnb")
    {
        return Some(true);
    }
    let has_own =
        format == Some(1) || card.clocks.iter().any(|it| it.domain == "mclk") || source.is_there("pcie_bw");
    has_own.then_some(false)
}

/// Whether the kernel holds a dump of this card's hang (drivers/base/devcoredump.c). `None` where the kernel
/// makes no dumps (the class is missing or its `disabled` is set), and where a dump's device is not known.
fn hang(root: &Root, address: PciAddress) -> Option<bool> {
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
