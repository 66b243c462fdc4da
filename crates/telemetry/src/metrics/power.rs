//! Power, clocks, fans, and what limits the clocks.

use crate::metric::{Kind, Metric, Scope};

pub static POWER_USAGE: Metric = Metric {
    name: "rocm_power_usage",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "watts",
    help: "Power that the GPU draws.",
    labels: &[],
    source: "hwmon/hwmon*/power1_average, power1_input, gpu_metrics",
    dcgm: "DCGM_FI_DEV_POWER_USAGE",
    dme: "gpu_package_power, gpu_average_package_power, gpu_power_usage",
};

pub static POWER_LIMIT: Metric = Metric {
    name: "rocm_power_limit_watts",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "watts",
    help: "Power limit: current, default, min or max.",
    labels: &["limit"],
    source: "hwmon/hwmon*/power1_cap, power1_cap_default, power1_cap_min, power1_cap_max",
    dcgm: "DCGM_FI_DEV_POWER_MGMT_LIMIT, DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF, DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN, DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX",
    dme: "",
};

pub static ENERGY: Metric = Metric {
    name: "rocm_energy_joules_total",
    scope: Scope::Card,
    kind: Kind::Counter,
    unit: "joules",
    help: "Energy that the GPU has drawn.",
    labels: &[],
    source: "gpu_metrics, hwmon/hwmon*/energy1_input",
    dcgm: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    dme: "gpu_energy_consumed",
};

pub static CLOCK: Metric = Metric {
    name: "rocm_clock_hertz",
    scope: Scope::Gpu,
    kind: Kind::Gauge,
    unit: "hertz",
    help: "Clock by domain and instance.",
    labels: &["clock", "instance"],
    source: "hwmon/hwmon*/freq*_input, pp_dpm_*, gpu_metrics",
    dcgm: "DCGM_FI_DEV_SM_CLOCK, DCGM_FI_DEV_MEM_CLOCK, DCGM_FI_DEV_VIDEO_CLOCK",
    dme: "gpu_clock",
};

pub static VOLTAGE: Metric = Metric {
    name: "rocm_voltage_volts",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "volts",
    help: "Voltage by rail.",
    labels: &["rail"],
    source: "hwmon/hwmon*/in*_input",
    dcgm: "",
    dme: "gpu_voltage, gpu_gfx_voltage, gpu_memory_voltage",
};

pub static FAN_SPEED: Metric = Metric {
    name: "rocm_fan_speed_rpm",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "rpm",
    help: "Speed of a fan.",
    labels: &["fan"],
    source: "hwmon/hwmon*/fan*_input",
    dcgm: "DCGM_FI_DEV_FAN_SPEED",
    dme: "",
};

pub static FAN_MAX: Metric = Metric {
    name: "rocm_fan_max_rpm",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "rpm",
    help: "Highest speed of a fan.",
    labels: &["fan"],
    source: "hwmon/hwmon*/fan*_max",
    dcgm: "",
    dme: "",
};

pub static THROTTLE_STATUS: Metric = Metric {
    name: "rocm_gpu_throttle_status",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "",
    help: "1 while the firmware limits the clocks for this reason: thermal, power, current or other. A hotspot counts only within 5 °C of its critical limit: some firmware reports it at idle.",
    labels: &["reason"],
    source: "gpu_metrics, hwmon/hwmon*/temp2_input, temp2_crit",
    dcgm: "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    dme: "",
};

pub static THROTTLE_RESIDENCY: Metric = Metric {
    name: "rocm_throttle_residency_total",
    scope: Scope::Card,
    kind: Kind::Counter,
    unit: "",
    help: "Firmware samples in which a limit was active, by reason.",
    labels: &["reason"],
    source: "gpu_metrics",
    dcgm: "DCGM_FI_DEV_POWER_VIOLATION, DCGM_FI_DEV_THERMAL_VIOLATION",
    dme: "gpu_violation_*_residency_accumulated",
};

pub static THROTTLE_SAMPLES: Metric = Metric {
    name: "rocm_throttle_samples_total",
    scope: Scope::Card,
    kind: Kind::Counter,
    unit: "",
    help: "Firmware samples taken: the measure of rocm_throttle_residency_total.",
    labels: &[],
    source: "gpu_metrics",
    dcgm: "",
    dme: "gpu_violation_current_accumulated_counter",
};
