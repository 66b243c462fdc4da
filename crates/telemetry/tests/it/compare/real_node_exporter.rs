//! Compares with Prometheus' node_exporter, whose collectors drm and hwmon read these files, too.

use std::fs;
use std::path::Path;

use layout::{Machine, Nodes};
use support::exposition::{self, Series};
use support::node_exporter::{self, NodeExporter};
use support::real;

use crate::compare::machines;
use crate::compare::ours::{Ours, agree};

/// Our name for one of its series, with the labels beside the card's.
type Counterpart = (&'static str, Vec<(&'static str, String)>);

/// node_exporter's answer for a machine.
struct Theirs {
    series: Vec<Series>,
    root: std::path::PathBuf,
}

impl Theirs {
    fn of(root: &Path) -> Self {
        let exporter = NodeExporter::start(root, &["drm", "hwmon"]);
        Self { series: exposition::parse(&exporter.scrape()), root: root.to_owned() }
    }

    /// The card of a series: `card="card1"` leads to it, `chip="0000:00:01_1_0000:64:00_0"` ends with it. None where it
    /// is not amdgpu's, which its drm collector does not tell apart.
    fn pci(&self, series: &Series) -> Option<String> {
        let pci = match (series.label("card"), series.label("chip")) {
            ("", chip) => chip.get(chip.len().checked_sub("0000:00:00.0".len())?..)?.replace('_', "."),
            (card, _) => {
                let device =
                    fs::canonicalize(self.root.join("sys/class/drm").join(card).join("device")).unwrap();
                device.file_name()?.to_str()?.to_owned()
            }
        };
        self.root.join("sys/bus/pci/drivers/amdgpu").join(&pci).exists().then_some(pci)
    }

    /// hwmon's label of the sensor: `edge` for `temp1`.
    fn sensor(&self, series: &Series) -> String {
        let is_its = |label: &&Series| {
            label.name == "node_hwmon_sensor_label"
                && ["chip", "sensor"].iter().all(|name| label.label(name) == series.label(name))
        };
        self.series.iter().find(is_its).map(|label| label.label("label").to_owned()).unwrap_or_default()
    }

    fn counterpart(&self, series: &Series) -> Option<Counterpart> {
        let plain = |name, label, value: &str| Some((name, vec![(label, value.to_owned())]));
        let sensor = series.label("sensor");
        match series.name.as_str() {
            "node_drm_gpu_busy_percent" => Some(("rocm_gpu_utilization", Vec::new())),
            "node_drm_memory_vram_size_bytes" => plain("rocm_memory_pool_size_bytes", "pool", "vram"),
            "node_drm_memory_vram_used_bytes" => plain("rocm_memory_pool_used_bytes", "pool", "vram"),
            "node_drm_memory_vis_vram_size_bytes" => {
                plain("rocm_memory_pool_size_bytes", "pool", "visible_vram")
            }
            "node_drm_memory_vis_vram_used_bytes" => {
                plain("rocm_memory_pool_used_bytes", "pool", "visible_vram")
            }
            "node_drm_memory_gtt_size_bytes" => plain("rocm_memory_pool_size_bytes", "pool", "gtt"),
            "node_drm_memory_gtt_used_bytes" => plain("rocm_memory_pool_used_bytes", "pool", "gtt"),
            "node_hwmon_temp_celsius" => {
                Some(("rocm_gpu_temperature", vec![("sensor", self.sensor(series))]))
            }
            "node_hwmon_temp_crit_celsius" => self.limit(series, "critical"),
            "node_hwmon_temp_emergency_celsius" => self.limit(series, "emergency"),
            "node_hwmon_in_volts" => Some(("rocm_voltage_volts", vec![("rail", self.sensor(series))])),
            "node_hwmon_fan_rpm" => plain("rocm_fan_speed_rpm", "fan", sensor.strip_prefix("fan")?),
            "node_hwmon_fan_max_rpm" => plain("rocm_fan_max_rpm", "fan", sensor.strip_prefix("fan")?),
            // power2 is a second limit of the APU that has power1.
            _ if sensor == "power2" => None,
            "node_hwmon_power_average_watt" => Some(("rocm_power_usage", Vec::new())),
            // Where the driver has both, the average is the power that is drawn.
            "node_hwmon_power_watt" if !self.has(series, "node_hwmon_power_average_watt") => {
                Some(("rocm_power_usage", Vec::new()))
            }
            "node_hwmon_power_cap_watt" => plain("rocm_power_limit_watts", "limit", "current"),
            "node_hwmon_power_cap_default_watt" => plain("rocm_power_limit_watts", "limit", "default"),
            "node_hwmon_power_cap_min_watt" => plain("rocm_power_limit_watts", "limit", "min"),
            "node_hwmon_power_cap_max_watt" => plain("rocm_power_limit_watts", "limit", "max"),
            _ => None,
        }
    }

    fn limit(&self, series: &Series, limit: &str) -> Option<Counterpart> {
        let labels = vec![("sensor", self.sensor(series)), ("limit", limit.to_owned())];
        Some(("rocm_gpu_temperature_limit_celsius", labels))
    }

    /// Whether the series' sensor has a series of that name, too.
    fn has(&self, series: &Series, name: &str) -> bool {
        self.series.iter().any(|other| other.name == name && other.labels == series.labels)
    }
}

/// Compares each value that both have: how many. Its drm collector says 0 for a file that is not there; there the exporter
/// must say nothing.
#[track_caller]
fn compare(name: &str, machine: &Machine) -> usize {
    let root = machines::lay_out(machine, Nodes::Recorded);
    let (theirs, ours) = (Theirs::of(root.path()), Ours::of(root.path()));
    let mut compared = 0;
    for series in &theirs.series {
        let Some(pci) = theirs.pci(series) else { continue };
        let Some((metric, labels)) = theirs.counterpart(series) else { continue };
        let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
        match ours.value(&pci, metric, &labels) {
            Some(value) => {
                assert!(agree(value, series.value), "{name}: {metric}{labels:?} is {value}, {series:?}");
                compared += 1;
            }
            None => {
                let is_of_nothing = series.name.starts_with("node_drm") && series.value == 0.0;
                assert!(is_of_nothing, "{name}: {metric}{labels:?} is absent, {series:?}");
            }
        }
    }
    compared
}

/// The least number of values of each machine, counted by hand in its mem_info_*, gpu_busy_percent and hwmon.
#[test]
fn real_node_exporter_says_the_same_of_each_captured_machine() {
    if !real::require(&[node_exporter::PROGRAM]) {
        return;
    }
    for ((name, machine), least) in machines::all().into_iter().zip([11, 9, 18, 24, 18, 7, 36]) {
        let compared = compare(name, &machine);
        eprintln!("{name}: {compared} values agree");
        assert!(compared >= least, "{name}: {compared} values were compared, {least} should be there");
    }
}
