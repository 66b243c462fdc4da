//! Fills in the readings that `gpu_metrics` has and sysfs and hwmon lack, in base units.
//!
//! Units are those of the comments in kgd_pp_interface.h (Linux 7.3), and of the drivers that fill the structures
//! (drivers/gpu/drm/amd/pm/swsmu). A value is left out where drivers put different units into one field:
//!
//! - `energy_accumulator` before 1.4: 2⁻¹⁶ J on MI200 (aldebaran_ppt.c), and on an RX 6900 XT such a unit would mean half a
//!   watt where hwmon says 36.
//! - activity and power of 2.x: in per cent or hundredths, in W or mW (renoir_ppt.c, vangogh_ppt.c, smu_v13_0_4_ppt.c);
//!   activity of 3.0, which its header and smu_v14_0_0_ppt.c call differently.
//! - `throttle_status`, whose bits differ by ASIC, and `throttle_residency_*` of 3.0.
//! - power and fan speed before 1.4, which some drivers fill with 0 where there is no sensor (aldebaran_ppt.c). hwmon has
//!   them where there is one.

use inventory::Unknown;
use inventory::readings::{
    CardReadings, Clock, Engine, PartitionReadings, Power, Temperature, Throttle, Voltage, Xgmi, XgmiLink,
};

use super::source::Source;
use crate::gpu_metrics::GpuMetrics;

/// 2⁻¹⁶ J, which the header calls 15.259 µJ.
const ENERGY_UNITS_PER_JOULE: f64 = 65_536.0;

/// Fills in what the card's other files did not give.
pub(super) fn fill(metrics: &GpuMetrics, readings: &mut CardReadings, source: &mut Source<'_>) {
    let (format, content) = metrics.version;
    let is_apu = format > 1;
    let is_instinct = format == 1 && content >= 4;
    temperatures(metrics, if is_apu { 100.0 } else { 1.0 }, &mut readings.temperatures);
    power(metrics, &mut readings.power);
    if is_instinct {
        let joules = |units| units as f64 / ENERGY_UNITS_PER_JOULE;
        readings.energy_joules = readings.energy_joules.or(metrics.value("energy_accumulator").map(joules));
    }
    clocks(metrics, is_instinct, &mut readings.clocks);
    voltages(metrics, &mut readings.voltages);
    if !is_apu {
        activity(metrics, readings, source);
    }
    pcie(metrics, readings);
    readings.xgmi.width = metrics.value("xgmi_link_width").and_then(|lanes| u32::try_from(lanes).ok());
    readings.xgmi.speed = metrics.value("xgmi_link_speed").map(|gigabits| gigabits as f64 * 1e9);
    links(metrics, &mut readings.xgmi);
    readings.throttle = throttle(metrics, &readings.temperatures);
}

/// °C in format 1, hundredths of it in 2 and 3. The CPU cores' of an APU are not the GPU's.
///
/// 0 is no reading. The drivers copy what the firmware's table holds (aldebaran_ppt.c, smu_v13_0_0_ppt.c,
/// `smu_v13_0_6_get_gpu_metrics`), and a sensor that the board lacks stays 0 there.
fn temperatures(metrics: &GpuMetrics, per_degree: f64, known: &mut Vec<Temperature>) {
    // Sensors are named by hwmon's labels where hwmon has them: `edge` is the graphics core of an APU
    // (METRICS_TEMPERATURE_EDGE).
    let sensors = [
        ("temperature_edge", "edge"),
        ("temperature_gfx", "edge"),
        ("temperature_hotspot", "junction"),
        ("temperature_mem", "mem"),
        ("temperature_soc", "soc"),
        ("temperature_skin", "skin"),
        ("temperature_vrgfx", "vrgfx"),
        ("temperature_vrsoc", "vrsoc"),
        ("temperature_vrmem", "vrmem"),
    ];
    let arrays = [
        ("temperature_hbm", "hbm"),
        ("temperature_mid", "mid"),
        ("temperature_aid", "aid"),
        ("temperature_xcd", "xcd"),
    ];
    let single =
        sensors.into_iter().filter_map(|(field, sensor)| Some((sensor.to_owned(), metrics.value(field)?)));
    let several = arrays.into_iter().flat_map(|(field, sensor)| {
        metrics.values(field).map(move |(place, value)| (format!("{sensor}{place}"), value))
    });
    for (sensor, value) in single.chain(several).filter(|(_, value)| *value > 0) {
        let celsius = Some(value as f64 / per_degree);
        match known.iter_mut().find(|it| it.sensor == sensor) {
            Some(known) => known.celsius = known.celsius.or(celsius),
            None => {
                known.push(Temperature { sensor, celsius, critical_celsius: None, emergency_celsius: None })
            }
        }
    }
}

fn power(metrics: &GpuMetrics, power: &mut Power) {
    let watts = match metrics.version {
        (1, 4..) => metrics.value("curr_socket_power").map(|watts| watts as f64),
        (3, _) => metrics.value("average_socket_power").map(|milliwatts| milliwatts as f64 / 1e3),
        _ => None,
    };
    power.watts = power.watts.or(watts);
}

/// MHz. hwmon gives one `sclk`; the arrays of an Instinct give each XCC's and each AID's beside it.
fn clocks(metrics: &GpuMetrics, is_instinct: bool, known: &mut Vec<Clock>) {
    let fields = [
        ("current_gfxclk", "sclk", None),
        ("current_uclk", "mclk", None),
        ("current_fclk", "fclk", None),
        ("current_socclk", "socclk", None),
        ("current_vclk", "vclk", None),
        ("current_vclk0", "vclk", Some(0)),
        ("current_vclk1", "vclk", Some(1)),
        ("current_dclk", "dclk", None),
        ("current_dclk0", "dclk", Some(0)),
        ("current_dclk1", "dclk", Some(1)),
    ];
    for (field, domain, instance) in fields {
        for (place, megahertz) in metrics.values(field) {
            let instance = if is_instinct && field != "current_uclk" { Some(place) } else { instance };
            if !known.iter().any(|clock| (&*clock.domain, clock.instance) == (domain, instance)) {
                known.push(Clock { domain: domain.into(), instance, hertz: megahertz as f64 * 1e6 });
            }
        }
    }
}

/// Adds the voltages, which `gpu_metrics` gives in mV.
fn voltages(metrics: &GpuMetrics, known: &mut Vec<Voltage>) {
    let rails = [
        ("voltage_gfx", "vddgfx"),
        ("average_gfx_voltage", "vddgfx"),
        ("voltage_soc", "soc"),
        ("average_soc_voltage", "soc"),
        ("voltage_mem", "mem"),
    ];
    for (field, rail) in rails {
        if let Some(millivolts) = metrics.value(field)
            && !known.iter().any(|voltage| voltage.rail == rail)
        {
            known.push(Voltage { rail: rail.to_owned(), volts: millivolts as f64 / 1e3 });
        }
    }
}

/// Per cent. What belongs to a partition of a partitioned card is not the card's: see [`partition`].
fn activity(metrics: &GpuMetrics, readings: &mut CardReadings, source: &mut Source<'_>) {
    let mut percent = |field: &str| {
        let value = metrics.value(field)?;
        checked(field, value, source)
    };
    readings.busy_percent = readings.busy_percent.or_else(|| percent("average_gfx_activity"));
    readings.memory_busy_percent = readings.memory_busy_percent.or_else(|| percent("average_umc_activity"));
    if !readings.engines.iter().any(|engine| engine.name == "vcn")
        && let Some(busy) = percent("average_mm_activity")
    {
        readings.engines.push(Engine { name: "vcn".into(), instance: None, busy: busy / 100.0 });
    }
    let partitions = metrics.value("num_partition").unwrap_or(1);
    let fields: &[_] = if partitions > 1 {
        // 1.4 and 1.5 do not know partitions: their engines are the card's.
        &[("vcn_activity", "vcn"), ("jpeg_activity", "jpeg")]
    } else {
        &[
            ("vcn_activity", "vcn"),
            ("jpeg_activity", "jpeg"),
            ("xcp_stats.gfx_busy_inst", "gfx"),
            ("xcp_stats.vcn_busy", "vcn"),
            ("xcp_stats.jpeg_busy", "jpeg"),
            ("gfx_busy_inst", "gfx"),
            ("vcn_busy", "vcn"),
            ("jpeg_busy", "jpeg"),
        ]
    };
    for (field, name) in fields {
        engines(metrics, field, name, Some, &mut readings.engines, source);
    }
    if partitions > 1 {
        readings.partitions = (0..u32::try_from(partitions).unwrap_or(0).min(MOST_PARTITIONS))
            .map(|id| partition(metrics, id, source))
            .collect();
    }
}

/// `NUM_XCP` in the header.
const MOST_PARTITIONS: u32 = 8;

/// One partition's share of a card's `xcp_stats` (1.6 to 1.8).
fn partition(metrics: &GpuMetrics, id: u32, source: &mut Source<'_>) -> PartitionReadings {
    // MAX_XCC and NUM_VCN; NUM_JPEG_ENG, and NUM_JPEG_ENG_V1 from 1.8 on.
    let jpegs = if metrics.version.1 >= 8 { 40 } else { 32 };
    let mut engines_of = Vec::new();
    for (field, name, count) in [
        ("xcp_stats.gfx_busy_inst", "gfx", 8),
        ("xcp_stats.vcn_busy", "vcn", 4),
        ("xcp_stats.jpeg_busy", "jpeg", jpegs),
    ] {
        let own = |place: u32| place.checked_sub(id * count).filter(|place| *place < count);
        engines(metrics, field, name, own, &mut engines_of, source);
    }
    PartitionReadings { busy_percent: busy(&engines_of), engines: engines_of, ..PartitionReadings::default() }
}

/// A partition's `xcp_metrics`.
pub(super) fn of_partition(metrics: &GpuMetrics, source: &mut Source<'_>) -> PartitionReadings {
    let mut readings = PartitionReadings::default();
    for (field, name) in [("gfx_busy_inst", "gfx"), ("vcn_busy", "vcn"), ("jpeg_busy", "jpeg")] {
        engines(metrics, field, name, Some, &mut readings.engines, source);
    }
    readings.busy_percent = busy(&readings.engines);
    clocks(metrics, true, &mut readings.clocks);
    readings
}

/// How busy a partition is: the mean of its XCCs, of which each says whole per cent.
fn busy(engines: &[Engine]) -> Option<f64> {
    let xccs = engines.iter().filter(|engine| engine.name == "gfx");
    let percents: Vec<f64> = xccs.map(|xcc| (xcc.busy * 100.0).round()).collect();
    (!percents.is_empty()).then(|| percents.iter().sum::<f64>() / percents.len() as f64)
}

/// Adds the engines of a field. `own`: an engine's number by its place in the file, `None` where it is another's.
fn engines(
    metrics: &GpuMetrics,
    field: &str,
    name: &'static str,
    own: impl Fn(u32) -> Option<u32>,
    known: &mut Vec<Engine>,
    source: &mut Source<'_>,
) {
    for (place, value) in metrics.values(field) {
        let Some(instance) = own(place) else { continue };
        if let Some(percent) = checked(field, value, source) {
            known.push(Engine { name: name.into(), instance: Some(instance), busy: percent / 100.0 });
        }
    }
}

fn checked(field: &str, percent: u64, source: &mut Source<'_>) -> Option<f64> {
    if percent <= 100 {
        return Some(percent as f64);
    }
    let shown = source.shown(source.metrics);
    let reason = format!("{} has {percent} in {field}, which is no percentage", shown.display());
    source.fault(source.metrics, Unknown::because(reason));
    None
}

/// The link's speed is in 0.1 GT/s.
///
/// The bandwidth is in Mb/s, as AMD SMI says of it (`amdsmi_pcie_info_t`). The header says GB/s, which cannot be. An MI325X
/// had accumulated 7·10¹¹ (ROCm/device-metrics-exporter, pull request 202): with a sample a millisecond, 20 years of 1 GB/s.
fn pcie(metrics: &GpuMetrics, readings: &mut CardReadings) {
    let pcie = &mut readings.pcie;
    pcie.speed = pcie.speed.or(metrics.value("pcie_link_speed").map(|tenths| tenths as f64 * 1e8));
    pcie.width = pcie.width.or(metrics.value("pcie_link_width").and_then(|lanes| u32::try_from(lanes).ok()));
    pcie.bytes_per_second = metrics.value("pcie_bandwidth_inst").map(|megabits| megabits as f64 * 1e6 / 8.0);
    pcie.replays = metrics.value("pcie_replay_count_acc").or(pcie.replays);
    pcie.replay_rollovers = metrics.value("pcie_replay_rover_count_acc");
    pcie.naks_sent = metrics.value("pcie_nak_sent_count_acc");
    pcie.naks_received = metrics.value("pcie_nak_rcvd_count_acc");
    pcie.recoveries = metrics.value("pcie_l0_to_recov_count_acc");
}

/// Traffic in KB, which the firmware counts as 1,024 bytes.
fn links(metrics: &GpuMetrics, xgmi: &mut Xgmi) {
    type Set = fn(&mut XgmiLink, u64);
    let fields: [(&str, Set); 3] = [
        ("xgmi_link_status", |link, status| link.up = Some(status != 0)),
        ("xgmi_read_data_acc", |link, kilobytes| link.read_bytes = kilobytes.checked_mul(1024)),
        ("xgmi_write_data_acc", |link, kilobytes| link.written_bytes = kilobytes.checked_mul(1024)),
    ];
    for (field, set) in fields {
        for (place, value) in metrics.values(field) {
            match xgmi.links.iter_mut().find(|link| link.link == place) {
                Some(link) => set(link, value),
                None => {
                    let mut link = XgmiLink { link: place, up: None, read_bytes: None, written_bytes: None };
                    set(&mut link, value);
                    xgmi.links.push(link);
                }
            }
        }
    }
    xgmi.links.sort_unstable_by_key(|link| link.link);
}

/// `indep_throttle_status` has the bits SMU_THROTTLER_* of amdgpu_smu.h.
fn throttle(metrics: &GpuMetrics, temperatures: &[Temperature]) -> Throttle {
    let mut throttle = Throttle { samples: metrics.value("accumulation_counter"), ..Throttle::default() };
    if let Some(bits) = metrics.value("indep_throttle_status") {
        let status = [
            ("power", Some(bits & 0x0000_0000_0000_ffff != 0)),
            ("current", Some(bits & 0x0000_0000_ffff_0000 != 0)),
            ("thermal", is_thermal(bits & 0x00ff_ffff_0000_0000, temperatures)),
            ("other", Some(bits & 0xff00_0000_0000_0000 != 0)),
        ];
        throttle.status = status.into_iter().filter_map(|(reason, is)| Some((reason.into(), is?))).collect();
    }
    let residencies = [
        ("prochot_residency_acc", "prochot"),
        ("ppt_residency_acc", "power"),
        ("socket_thm_residency_acc", "socket_thermal"),
        ("vr_thm_residency_acc", "vr_thermal"),
        ("hbm_thm_residency_acc", "hbm_thermal"),
    ];
    let residency = |(field, reason): (&str, &'static str)| Some((reason.into(), metrics.value(field)?));
    throttle.residency = residencies.into_iter().filter_map(residency).collect();
    throttle
}

/// `SMU_THROTTLER_TEMP_HOTSPOT_BIT`.
const HOTSPOT: u64 = 1 << 36;

/// How far below its critical limit the junction may be for [`HOTSPOT`] to count, in °C.
const NEAR_LIMIT: f64 = 5.0;

/// Whether heat limits the clocks: reads the thermal bits of the throttle status.
///
/// Firmware of discrete RDNA3 and RDNA4 cards (SMU 13.0.0, 13.0.7, 13.0.10, 14.0.2) keeps [`HOTSPOT`] set at idle. Its
/// percentage for the hotspot is never 0, by which `smu_v13_0_get_throttler_status` sets the bit (ROCm/rocm-systems, issue
/// 11781; drm/amd, issue 3251). The firmware throttles by the limit that the driver gives as the junction's critical one
/// (`TemperatureLimit[TEMP_HOTSPOT]`). So that bit alone counts only near the limit, and without it nothing is known.
fn is_thermal(bits: u64, temperatures: &[Temperature]) -> Option<bool> {
    if bits != HOTSPOT {
        return Some(bits != 0);
    }
    let junction = temperatures.iter().find(|it| it.sensor == "junction")?;
    Some(junction.celsius? >= junction.critical_celsius? - NEAR_LIMIT)
}
