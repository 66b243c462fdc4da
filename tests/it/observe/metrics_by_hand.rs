//! Ten values of each captured machine. Each was worked out by hand from the raw file beside it; the test also holds the
//! raw text against the archive. `gpu_metrics@20+2` are the bytes at an offset, in hexadecimal (kgd_pp_interface.h: of
//! format 1.3 they are `struct gpu_metrics_v1_3`, of 2.1 `struct gpu_metrics_v2_1`).

use layout::{Entry, Machine, Tree, XcpNames};
use support::captures;
use telemetry::metric::GPU_LABELS;
use telemetry::sample::Sample;

use crate::observe::metrics::scrape;

/// A file, what it holds, the series without its GPU's labels, and the value.
type Row<'a> = (&'a str, &'a str, &'a str, f64);

fn hold(machine: &Machine, archive: &Tree, rows: &[Row<'_>]) {
    assert!(rows.len() >= 10, "{}", rows.len());
    let samples = scrape(machine);
    let mut wrong = Vec::new();
    for (path, raw, series, expected) in rows {
        let found = read(archive, path);
        if found != *raw {
            wrong.push(format!("{path} holds {found:?}, not {raw:?}"));
        }
        let values: Vec<f64> =
            samples.iter().filter(|sample| shown(sample) == *series).map(|sample| sample.value).collect();
        // What is divided by a power of ten has no shorter distance to its text than this.
        let is_right = matches!(values[..], [value] if (value - expected).abs() <= expected.abs() * 1e-12);
        if !is_right {
            wrong.push(format!("{series}: expected {expected}, found {values:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn read(archive: &Tree, path: &str) -> String {
    let (path, place) = path.split_once('@').map_or((path, None), |(path, place)| (path, Some(place)));
    let Some(Entry::File(bytes)) = archive.get(path) else { panic!("{path} is not in the archive") };
    let Some((offset, count)) = place.and_then(|place| place.split_once('+')) else {
        return String::from_utf8(bytes.clone()).unwrap().trim_matches(['\0', '\n', ' ']).to_owned();
    };
    let (offset, count): (usize, usize) = (offset.parse().unwrap(), count.parse().unwrap());
    bytes[offset..offset + count].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `name{label="value"}` without the labels that name the GPU.
fn shown(sample: &Sample) -> String {
    let own = sample.labels.iter().filter(|(name, _)| !GPU_LABELS.contains(name));
    let labels: Vec<String> = own.map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    if labels.is_empty() {
        return sample.metric.name.to_owned();
    }
    format!("{}{{{}}}", sample.metric.name, labels.join(","))
}

#[test]
fn phoenix_by_hand() {
    let archive = captures::unpack("phoenix").beneath("phoenix/card1/device");
    let rows = [
        ("power/runtime_status", "active", "rocm_gpu_suspended", 0.0),
        ("hwmon/hwmon6/temp1_input", "25000", r#"rocm_gpu_temperature{sensor="edge"}"#, 25.0),
        // temperature_soc, in hundredths of a degree: 0x0ab1 is 2737.
        ("gpu_metrics@6+2", "b10a", r#"rocm_gpu_temperature{sensor="soc"}"#, 27.37),
        ("gpu_busy_percent", "0", "rocm_gpu_utilization", 0.0),
        // An APU: header 2.1. Its memory is GTT.
        ("mem_info_gtt_used", "211398656", "rocm_memory_used", 211_398_656.0),
        ("mem_info_gtt_total", "31433977856", "rocm_memory_total", 31_433_977_856.0),
        ("mem_info_vram_used", "1272893440", r#"rocm_memory_pool_used_bytes{pool="vram"}"#, 1_272_893_440.0),
        ("hwmon/hwmon6/power1_average", "3103000", "rocm_power_usage", 3.103),
        ("hwmon/hwmon6/freq1_input", "800000000", r#"rocm_clock_hertz{clock="sclk"}"#, 8e8),
        ("hwmon/hwmon6/in0_input", "814", r#"rocm_voltage_volts{rail="vddgfx"}"#, 0.814),
        ("hwmon/hwmon6/in1_input", "615", r#"rocm_voltage_volts{rail="vddnb"}"#, 0.615),
        (
            "current_link_speed",
            "16.0 GT/s PCIe",
            r#"rocm_pcie_link_speed_transfers_per_second{link="current"}"#,
            16e9,
        ),
        (
            "fw_version/smc_fw_version",
            "0x004c6000",
            r#"rocm_firmware_info{firmware="smc",version="0x004c6000"}"#,
            1.0,
        ),
    ];
    hold(&captures::phoenix(), &archive, &rows);
}

#[test]
fn vangogh_by_hand() {
    let archive = captures::unpack("vangogh").beneath("vangogh/card0/device");
    let limit = |limit| format!("rocm_power_limit_watts{{limit=\"{limit}\"}}");
    let rows = [
        ("hwmon/hwmon4/temp1_input", "56000", r#"rocm_gpu_temperature{sensor="edge"}"#, 56.0),
        ("gpu_busy_percent", "0", "rocm_gpu_utilization", 0.0),
        ("hwmon/hwmon4/power1_average", "3218000", "rocm_power_usage", 3.218),
        ("hwmon/hwmon4/power1_cap", "15000000", &limit("current"), 15.0),
        ("hwmon/hwmon4/power1_cap_default", "15000000", &limit("default"), 15.0),
        ("hwmon/hwmon4/power1_cap_min", "0", &limit("min"), 0.0),
        ("hwmon/hwmon4/power1_cap_max", "29000000", &limit("max"), 29.0),
        ("hwmon/hwmon4/freq1_input", "200000000", r#"rocm_clock_hertz{clock="sclk"}"#, 2e8),
        ("hwmon/hwmon4/in0_input", "15", r#"rocm_voltage_volts{rail="vddgfx"}"#, 0.015),
        ("hwmon/hwmon4/in1_input", "669", r#"rocm_voltage_volts{rail="vddnb"}"#, 0.669),
        ("current_link_width", "16", r#"rocm_pcie_link_width_lanes{link="current"}"#, 16.0),
    ];
    hold(&captures::vangogh(), &archive, &rows);
}

#[test]
fn rx7800xt_by_hand() {
    let archive = captures::unpack("rx7800xt").beneath("rx7800xt/card1/device");
    let limit = |sensor, limit| {
        format!("rocm_gpu_temperature_limit_celsius{{sensor=\"{sensor}\",limit=\"{limit}\"}}")
    };
    let rows = [
        ("hwmon/hwmon4/temp2_input", "31000", r#"rocm_gpu_temperature{sensor="junction"}"#, 31.0),
        ("hwmon/hwmon4/temp3_crit", "108000", &limit("mem", "critical"), 108.0),
        ("hwmon/hwmon4/temp3_emergency", "113000", &limit("mem", "emergency"), 113.0),
        // temperature_vrgfx, in degrees: 0x0022 is 34.
        ("gpu_metrics@10+2", "2200", r#"rocm_gpu_temperature{sensor="vrgfx"}"#, 34.0),
        ("gpu_busy_percent", "2", "rocm_gpu_utilization", 2.0),
        ("hwmon/hwmon4/power1_average", "32000000", "rocm_power_usage", 32.0),
        ("hwmon/hwmon4/power1_cap_min", "212000000", r#"rocm_power_limit_watts{limit="min"}"#, 212.0),
        ("hwmon/hwmon4/freq2_input", "456000000", r#"rocm_clock_hertz{clock="mclk"}"#, 456e6),
        ("hwmon/hwmon4/fan1_input", "868", r#"rocm_fan_speed_rpm{fan="1"}"#, 868.0),
        ("hwmon/hwmon4/fan1_max", "3300", r#"rocm_fan_max_rpm{fan="1"}"#, 3300.0),
        // voltage_soc, in millivolts: 0x0300 is 768.
        ("gpu_metrics@104+2", "0003", r#"rocm_voltage_volts{rail="soc"}"#, 0.768),
        // indep_throttle_status is 0: nothing limits the clocks.
        ("gpu_metrics@112+8", "0000000000000000", r#"rocm_gpu_throttle_status{reason="thermal"}"#, 0.0),
    ];
    hold(&captures::rx7800xt(), &archive, &rows);
}

#[test]
fn rx6900xt_by_hand() {
    let archive = captures::unpack("rx6900xt").beneath("rx6900xt/card0/device");
    let rows = [
        ("hwmon/hwmon5/temp1_input", "56000", r#"rocm_gpu_temperature{sensor="edge"}"#, 56.0),
        ("gpu_busy_percent", "3", "rocm_gpu_utilization", 3.0),
        ("mem_busy_percent", "0", "rocm_memory_utilization", 0.0),
        ("mem_info_vram_used", "668274688", "rocm_memory_used", 668_274_688.0),
        ("mem_info_vram_total", "17163091968", "rocm_memory_total", 17_163_091_968.0),
        ("mem_info_gtt_used", "62369792", r#"rocm_memory_pool_used_bytes{pool="gtt"}"#, 62_369_792.0),
        ("hwmon/hwmon5/power1_average", "36000000", "rocm_power_usage", 36.0),
        ("hwmon/hwmon5/power1_cap", "289000000", r#"rocm_power_limit_watts{limit="current"}"#, 289.0),
        ("hwmon/hwmon5/freq2_input", "1000000000", r#"rocm_clock_hertz{clock="mclk"}"#, 1e9),
        ("hwmon/hwmon5/fan1_input", "0", r#"rocm_fan_speed_rpm{fan="1"}"#, 0.0),
        ("max_link_width", "16", r#"rocm_pcie_link_width_lanes{link="max"}"#, 16.0),
        (
            "fw_version/smc_fw_version",
            "0x003a5600",
            r#"rocm_firmware_info{firmware="smc",version="0x003a5600"}"#,
            1.0,
        ),
    ];
    hold(&captures::rx6900xt(), &archive, &rows);
}

#[test]
fn rx9070_by_hand() {
    let archive = captures::unpack("rx9070").beneath("rx9070/card1/device");
    let rows = [
        ("hwmon/hwmon2/temp3_input", "72000", r#"rocm_gpu_temperature{sensor="mem"}"#, 72.0),
        // temperature_vrmem, in degrees: 0x0036 is 54.
        ("gpu_metrics@14+2", "3600", r#"rocm_gpu_temperature{sensor="vrmem"}"#, 54.0),
        ("gpu_busy_percent", "25", "rocm_gpu_utilization", 25.0),
        ("hwmon/hwmon2/power1_average", "49000000", "rocm_power_usage", 49.0),
        ("hwmon/hwmon2/power1_cap", "200000000", r#"rocm_power_limit_watts{limit="current"}"#, 200.0),
        ("hwmon/hwmon2/power1_cap_default", "220000000", r#"rocm_power_limit_watts{limit="default"}"#, 220.0),
        ("hwmon/hwmon2/freq1_input", "900000000", r#"rocm_clock_hertz{clock="sclk"}"#, 9e8),
        ("hwmon/hwmon2/in0_input", "790", r#"rocm_voltage_volts{rail="vddgfx"}"#, 0.79),
        // voltage_mem, in millivolts: 0x0541 is 1345.
        ("gpu_metrics@108+2", "4105", r#"rocm_voltage_volts{rail="mem"}"#, 1.345),
        ("hwmon/hwmon2/fan1_input", "1944", r#"rocm_fan_speed_rpm{fan="1"}"#, 1944.0),
        (
            "current_link_speed",
            "32.0 GT/s PCIe",
            r#"rocm_pcie_link_speed_transfers_per_second{link="current"}"#,
            32e9,
        ),
    ];
    hold(&captures::rx9070(), &archive, &rows);
}

#[test]
fn vega_by_hand() {
    let archive = captures::unpack("vega-drm-card0").beneath("card0/device");
    let size = |pool| format!("rocm_memory_pool_size_bytes{{pool=\"{pool}\"}}");
    let speed = |link| format!("rocm_pcie_link_speed_transfers_per_second{{link=\"{link}\"}}");
    let rows = [
        ("gpu_busy_percent", "4", "rocm_gpu_utilization", 4.0),
        ("mem_info_vram_used", "1490378752", "rocm_memory_used", 1_490_378_752.0),
        ("mem_info_vram_total", "8573157376", "rocm_memory_total", 8_573_157_376.0),
        ("mem_info_vis_vram_total", "8573157376", &size("visible_vram"), 8_573_157_376.0),
        ("mem_info_gtt_used", "144560128", r#"rocm_memory_pool_used_bytes{pool="gtt"}"#, 144_560_128.0),
        ("current_link_speed", "8.0 GT/s PCIe", &speed("current"), 8e9),
        ("max_link_speed", "8.0 GT/s PCIe", &speed("max"), 8e9),
        ("current_link_width", "16", r#"rocm_pcie_link_width_lanes{link="current"}"#, 16.0),
        ("max_link_width", "16", r#"rocm_pcie_link_width_lanes{link="max"}"#, 16.0),
        (
            "vbios_version",
            "115-D050PIL-100",
            r#"rocm_gpu_info{device_id="687f",vbios="115-D050PIL-100"}"#,
            1.0,
        ),
    ];
    hold(&captures::vega(), &archive, &rows);
}

/// KFD alone was captured: identities and links. There is no mem_banks, so no size.
#[test]
fn mi300x_by_hand() {
    let samples = scrape(&captures::mi300x(XcpNames::Dot));
    let topology = captures::unpack("mi300x-cpx-kfd").beneath("topology/nodes");
    // Node, its `drm_render_minor`, and the labels that follow from its `location_id`: see captures::MI300X. GPU nodes begin
    // at 2.
    for (node, gpu, pci, partition) in [
        (2, "0", "0000:05:00.0", "0"),
        (3, "1", "0000:05:00.0", "1"),
        (9, "7", "0000:05:00.0", "7"),
        (10, "8", "0000:27:00.0", "0"),
        (33, "31", "0000:65:00.0", "7"),
        (64, "62", "0000:e5:00.0", "6"),
    ] {
        let links = topology.beneath(&format!("{node}/io_links"));
        // `grep -l 'type 11' topology/nodes/NODE/io_links/*/properties | wc -l` says 62 for each of these.
        let is_xgmi = |entry: &Entry| matches!(entry, Entry::File(text) if text.starts_with(b"type 11\n"));
        assert_eq!(links.iter().filter(|(_, entry)| is_xgmi(entry)).count(), 62, "{node}");
        let labels = [("gpu", gpu), ("pci", pci), ("partition", partition), ("gfx", "gfx942")];
        let is_its = |sample: &&Sample| {
            labels.iter().all(|(name, value)| sample.labels.iter().any(|(n, v)| n == name && v == value))
        };
        let its: Vec<(&str, f64)> =
            samples.iter().filter(is_its).map(|sample| (sample.metric.name, sample.value)).collect();
        // The layout's folder of processes is empty, so that nothing uses these GPUs.
        let expected = [("rocm_gpu_info", 1.0), ("rocm_xgmi_links", 62.0), ("rocm_gpu_processes", 0.0)];
        assert_eq!(its, expected, "{node}");
    }
    let count = |name: &str| samples.iter().filter(|sample| sample.metric.name == name).count();
    assert_eq!(count("rocm_gpu_info"), 63 + 8, "63 partitions of eight cards");
    assert_eq!(count("rocm_xgmi_links"), 63);
    assert_eq!(count("rocm_memory_total"), 0, "no size was captured");
    // The card's uuid, which its partitions share: nodes/2/properties, unique_id 16404946649897475633.
    let uuid = ("uuid", format!("GPU-{:016x}", 16_404_946_649_897_475_633_u64));
    let holders = samples.iter().filter(|sample| sample.labels.contains(&uuid));
    assert!(holders.clone().count() > 0);
    holders.for_each(|sample| assert!(!sample.labels.iter().any(|(name, _)| *name == "partition")));
}
