//! Compares with rocm-smi of Debian sid, which reads sysfs, hwmon, and `gpu_metrics` by a decoder of its own.

use std::fs;
use std::path::Path;

use amdgpu::gpu_metrics::GpuMetrics;
use layout::{Machine, Nodes};
use serde_json::{Map, Value};
use support::{real, smi, stage};

use crate::compare::machines;
use crate::compare::ours::{Ours, agree};

const ARGUMENTS: &[&str] = &[
    "--showtemp",
    "--showpower",
    "--showmaxpower",
    "--showuse",
    "--showmeminfo",
    "all",
    "--showvbios",
    "--showfwinfo",
    "--showclocks",
    "--showfan",
    "--showvoltage",
    "--showid",
    "--showbus",
    "--showmetrics",
    "--json",
];

/// rocm-smi's name of a value, rocworker's metric with the labels beside the card's, and what to multiply its value
/// with.
type Pair = (&'static str, &'static str, &'static [(&'static str, &'static str)], f64);

const VALUES: &[Pair] = &[
    ("Temperature (Sensor edge) (C)", "rocm_gpu_temperature", &[("sensor", "edge")], 1.0),
    ("Temperature (Sensor junction) (C)", "rocm_gpu_temperature", &[("sensor", "junction")], 1.0),
    ("Temperature (Sensor memory) (C)", "rocm_gpu_temperature", &[("sensor", "mem")], 1.0),
    ("Average Graphics Package Power (W)", "rocm_power_usage", &[], 1.0),
    ("Max Graphics Package Power (W)", "rocm_power_limit_watts", &[("limit", "current")], 1.0),
    ("GPU use (%)", "rocm_gpu_utilization", &[], 1.0),
    ("Voltage (mV)", "rocm_voltage_volts", &[("rail", "vddgfx")], 1e-3),
    ("Fan RPM", "rocm_fan_speed_rpm", &[("fan", "1")], 1.0),
    ("VRAM Total Memory (B)", "rocm_memory_pool_size_bytes", &[("pool", "vram")], 1.0),
    ("VRAM Total Used Memory (B)", "rocm_memory_pool_used_bytes", &[("pool", "vram")], 1.0),
    ("VIS_VRAM Total Memory (B)", "rocm_memory_pool_size_bytes", &[("pool", "visible_vram")], 1.0),
    ("VIS_VRAM Total Used Memory (B)", "rocm_memory_pool_used_bytes", &[("pool", "visible_vram")], 1.0),
    ("GTT Total Memory (B)", "rocm_memory_pool_size_bytes", &[("pool", "gtt")], 1.0),
    ("GTT Total Used Memory (B)", "rocm_memory_pool_used_bytes", &[("pool", "gtt")], 1.0),
];

/// Where sysfs has no file, rocm-smi takes the size of VRAM from KFD.
const OF_KFD: (&str, &str) = ("vangogh", "VRAM Total Memory (B)");

/// rocm-smi's name of a firmware, and the kernel's.
const FIRMWARE: &[(&str, &str)] = &[
    ("ASD", "asd"),
    ("ME", "me"),
    ("MEC", "mec"),
    ("MES", "mes"),
    ("MES KIQ", "mes_kiq"),
    ("PFP", "pfp"),
    ("RLC", "rlc"),
    ("SDMA", "sdma"),
    ("SMC", "smc"),
    ("VCN", "vcn"),
];

/// rocm-smi's answer for each card. rocm-smi gives further partitions an address that no PCI device has; they
/// are left out.
fn theirs(tree: &Path, root: &Path) -> Vec<Map<String, Value>> {
    let printed = stage::stdout(&smi::run(tree, root, smi::ROCM_SMI, ARGUMENTS));
    let json: Value = serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
    let gpus = json.as_object().unwrap().iter().filter(|(name, _)| name.starts_with("card"));
    let cards = gpus.filter(|(_, gpu)| root.join("sys/bus/pci/devices").join(pci(gpu)).exists());
    cards.map(|(_, gpu)| gpu.as_object().unwrap().clone()).collect()
}

fn pci(gpu: &Value) -> String {
    gpu["PCI Bus"].as_str().unwrap_or_else(|| panic!("no PCI address: {gpu:#}")).to_lowercase()
}

fn compare(name: &str, machine: &Machine, tree: &Path) -> usize {
    let root = machines::lay_out(machine, Nodes::Real);
    let ours = Ours::of(root.path());
    let compare_one = |theirs| compare_card(name, &theirs, &ours, root.path());
    theirs(tree, root.path()).into_iter().map(compare_one).sum()
}

fn compare_card(name: &str, theirs: &Map<String, Value>, ours: &Ours, root: &Path) -> usize {
    let text = |key: &str| theirs.get(key).and_then(Value::as_str).filter(|text| *text != "N/A");
    let pci = text("PCI Bus").unwrap_or_default().to_lowercase();
    let pci = pci.as_str();
    let mut compared = 0;
    for (key, metric, labels, factor) in VALUES {
        let Some(value) = text(key) else { continue };
        let value = value.parse::<f64>().unwrap_or_else(|_| panic!("{name}: {key}: {value}")) * factor;
        match ours.value(pci, metric, labels) {
            Some(own) => assert!(agree(own, value), "{name}: {metric}{labels:?} is {own}, {key} {value}"),
            None => {
                assert_eq!((name, *key), OF_KFD, "{name}: {metric}{labels:?} is absent, {key} is {value}");
                continue;
            }
        }
        compared += 1;
    }
    for (key, label) in [("VBIOS version", "vbios"), ("Device ID", "device_id")] {
        let Some(value) = text(key) else { continue };
        let own = ours.label(pci, "rocm_gpu_info", &[], label);
        let own = own.unwrap_or_else(|| panic!("{name}: rocm_gpu_info has no {label}, {key} is {value}"));
        assert_eq!(own.trim_start_matches("0x"), value.trim_start_matches("0x"), "{name}: {key}");
        compared += 1;
    }
    for (key, firmware) in FIRMWARE {
        let Some(version) = text(&format!("{key} firmware version")) else { continue };
        let own = ours.label(pci, "rocm_firmware_info", &[("firmware", firmware)], "version");
        let own = own.unwrap_or_else(|| panic!("{name}: no firmware {firmware}, which is {version}"));
        assert_eq!(number(own), number(version), "{name}: {firmware} is {own}, {key} {version}");
        compared += 1;
    }
    compared + compare_gpu_metrics(name, theirs, &gpu_metrics(root, pci))
}

/// A firmware's version: `0x21000104`, `99`, or `00.76.96.00`, whose parts are decimal bytes.
fn number(version: &str) -> u32 {
    let parts: Vec<u8> = version.split('.').filter_map(|part| part.parse().ok()).collect();
    match (version.strip_prefix("0x"), parts.as_slice()) {
        (Some(digits), _) => u32::from_str_radix(digits, 16).unwrap(),
        (None, [a, b, c, d]) => u32::from_be_bytes([*a, *b, *c, *d]),
        (None, _) => version.parse().unwrap_or_else(|_| panic!("{version} is no version")),
    }
}

fn gpu_metrics(root: &Path, pci: &str) -> Option<GpuMetrics> {
    let file = root.join("sys/bus/pci/devices").join(pci).join("gpu_metrics");
    GpuMetrics::decode(&fs::read(file).ok()?).ok()
}

/// Compares each field that both decoders name (`temperature_edge (C)` in rocm-smi's answer). A field that
/// one lacks must be absent in the other.
fn compare_gpu_metrics(name: &str, theirs: &Map<String, Value>, ours: &Option<GpuMetrics>) -> usize {
    let mut compared = 0;
    for (key, value) in theirs.iter().filter(|(key, _)| is_field(key)) {
        let Some(ours) = ours else { panic!("{name}: gpu_metrics is not decoded, {key} is {value}") };
        let field = key.split(' ').next().unwrap_or(key);
        let theirs = value.as_str().unwrap_or_default().parse::<u64>().ok();
        // rocm-smi fills in from later versions, and multiplies what is absent.
        if !V1_3.contains(&field) {
            continue;
        }
        assert_eq!(ours.value(field), theirs, "{name}: {field} of gpu_metrics {:?}", ours.version);
        compared += usize::from(theirs.is_some());
    }
    compared
}

fn is_field(key: &str) -> bool {
    V1_3.iter()
        .any(|field| key.strip_prefix(field).is_some_and(|unit| unit.is_empty() || unit.starts_with(" (")))
}

/// The plain fields of gpu_metrics_v1_3 (kgd_pp_interface.h) whose unit rocm-smi leaves as it is.
const V1_3: &[&str] = &[
    "temperature_edge",
    "temperature_hotspot",
    "temperature_mem",
    "temperature_vrgfx",
    "temperature_vrsoc",
    "temperature_vrmem",
    "average_gfx_activity",
    "average_umc_activity",
    "average_mm_activity",
    "average_socket_power",
    "energy_accumulator",
    "system_clock_counter",
    "average_gfxclk_frequency",
    "average_socclk_frequency",
    "average_uclk_frequency",
    "average_vclk0_frequency",
    "average_dclk0_frequency",
    "average_vclk1_frequency",
    "average_dclk1_frequency",
    "current_gfxclk",
    "current_socclk",
    "current_uclk",
    "current_vclk0",
    "current_dclk0",
    "current_vclk1",
    "current_dclk1",
    "throttle_status",
    "current_fan_speed",
    "pcie_link_width",
    "pcie_link_speed",
    "voltage_soc",
    "voltage_gfx",
    "voltage_mem",
    "indep_throttle_status",
];

/// The least number of values of each machine, counted in rocm-smi's output.
#[test]
fn real_rocm_smi_says_the_same_of_each_captured_machine() {
    if !real::require_root(&["unshare", "chroot"]) {
        return;
    }
    let Some([tree]) = real::require_made([smi::VARIABLE], &[]) else { return };
    for ((name, machine), least) in machines::all().into_iter().zip([21, 7, 43, 56, 43, 9, 30]) {
        let compared = compare(name, &machine, &tree);
        eprintln!("{name}: {compared} values agree");
        assert!(compared >= least, "{name}: {compared} values were compared, {least} should be there");
    }
}
