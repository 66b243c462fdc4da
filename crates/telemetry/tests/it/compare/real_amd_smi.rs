//! amd-smi of Debian sid, on a library of its own: fewer values, for it takes more from the driver's ioctls.

use std::path::Path;

use layout::{Machine, Nodes};
use serde_json::Value;
use support::{real, smi, stage};

use crate::compare::machines;
use crate::compare::ours::Ours;

/// The pointer to the value in amd-smi's answer, rocworker's metric, its labels beside the card's, and how
/// many of amd-smi's units make one of rocworker's.
type Pair = (&'static str, &'static str, &'static [(&'static str, &'static str)], f64);

const MIB: f64 = 1.0 / (1 << 20) as f64;

const VALUES: &[Pair] = &[
    ("/temperature/edge", "rocm_gpu_temperature", &[("sensor", "edge")], 1.0),
    ("/temperature/hotspot", "rocm_gpu_temperature", &[("sensor", "junction")], 1.0),
    ("/temperature/mem", "rocm_gpu_temperature", &[("sensor", "mem")], 1.0),
    ("/power/socket_power", "rocm_power_usage", &[], 1.0),
    ("/power/gfx_voltage", "rocm_voltage_volts", &[("rail", "vddgfx")], 1e3),
    ("/mem_usage/total_vram", "rocm_memory_pool_size_bytes", &[("pool", "vram")], MIB),
    ("/mem_usage/used_vram", "rocm_memory_pool_used_bytes", &[("pool", "vram")], MIB),
    ("/mem_usage/total_visible_vram", "rocm_memory_pool_size_bytes", &[("pool", "visible_vram")], MIB),
    ("/mem_usage/used_visible_vram", "rocm_memory_pool_used_bytes", &[("pool", "visible_vram")], MIB),
    ("/mem_usage/total_gtt", "rocm_memory_pool_size_bytes", &[("pool", "gtt")], MIB),
    ("/mem_usage/used_gtt", "rocm_memory_pool_used_bytes", &[("pool", "gtt")], MIB),
    ("/clock/gfx_2/clk", "rocm_clock_hertz", &[("clock", "sclk"), ("instance", "2")], 1e-6),
    ("/clock/vclk_1/clk", "rocm_clock_hertz", &[("clock", "vclk"), ("instance", "1")], 1e-6),
    ("/clock/dclk_1/clk", "rocm_clock_hertz", &[("clock", "dclk"), ("instance", "1")], 1e-6),
    ("/pcie/l0_to_recovery_count", "rocm_pcie_errors_total", &[("kind", "recovery")], 1.0),
    ("/pcie/replay_roll_over_count", "rocm_pcie_errors_total", &[("kind", "replay_rollover")], 1.0),
    ("/pcie/nak_sent_count", "rocm_pcie_errors_total", &[("kind", "nak_sent")], 1.0),
    ("/pcie/nak_received_count", "rocm_pcie_errors_total", &[("kind", "nak_received")], 1.0),
];

/// hwmon, which the exporter reads, and `gpu_metrics` differ there, as all of its invented numbers do.
const APART: (&str, &str) = ("two synthetic Instincts", "/power/socket_power");

/// The first GPU in amd-smi's answer to a command. amd-smi writes about network cards to stdout, too.
fn answer(tree: &Path, root: &Path, command: &str) -> Value {
    let printed = stage::stdout(&smi::run(tree, root, smi::AMD_SMI, &[command, "--json"]));
    let at = printed.find(['[', '{']).unwrap_or_default();
    let json: Value =
        serde_json::from_str(&printed[at..]).unwrap_or_else(|error| panic!("{error}: {printed}"));
    json.get("gpu_data").unwrap_or(&json)[0].clone()
}

/// A value, with its unit or without.
fn number(value: &Value) -> Option<f64> {
    value.get("value").unwrap_or(value).as_f64()
}

fn compare(name: &str, machine: &Machine, tree: &Path) -> usize {
    let root = machines::lay_out(machine, Nodes::Real);
    let ours = Ours::of(root.path());
    let pci = answer(tree, root.path(), "list")["bdf"].as_str().unwrap().to_owned();
    let metric = answer(tree, root.path(), "metric");
    let mut compared = 0;
    for (place, metric_of_ours, labels, factor) in VALUES {
        let Some(value) = metric.pointer(place).and_then(number).filter(|_| (name, *place) != APART) else {
            continue;
        };
        // A size of 0 stands for a file that is not there: what VRAM there is, it takes from KFD.
        let Some(own) = ours.value(&pci, metric_of_ours, labels) else {
            let of_nothing = place.starts_with("/mem_usage") && name == "vangogh";
            assert!(of_nothing, "{name}: {metric_of_ours}{labels:?} is absent, {place} is {value}");
            continue;
        };
        // amd-smi cuts off what is less than one of its units.
        let own = (own * factor + 1e-6).floor();
        assert!(own == value, "{name}: {metric_of_ours}{labels:?} is {own}, {place} {value}");
        compared += 1;
    }
    compared
}

/// The least number of values of each machine, counted in amd-smi's output. amd-smi reads no hwmon where it
/// has no `gpu_metrics` of a version that it knows.
#[test]
fn real_amd_smi_says_the_same_of_captured_machines() {
    if !real::require_root(&["unshare", "chroot"]) {
        return;
    }
    let Some([tree]) = real::require_made([smi::VARIABLE], &[]) else { return };
    let least = [
        ("phoenix", 7),
        ("rx7800xt", 5),
        ("rx9070", 5),
        ("vega-drm-card0", 6),
        ("two synthetic Instincts", 15),
    ];
    for (name, machine) in machines::all() {
        let Some((_, least)) = least.iter().find(|(of, _)| *of == name) else { continue };
        let compared = compare(name, &machine, &tree);
        eprintln!("{name}: {compared} values agree");
        assert!(compared >= *least, "{name}: {compared} values were compared, {least} should be there");
    }
}
