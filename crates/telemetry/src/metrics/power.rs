//! Power, clocks, fans, and what limits the clocks.

use inventory::series;

use crate::metric::{Kind, Metric, Scope};

pub static POWER_USAGE: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "watts",
    help: "Power that the GPU draws.",
    source: "hwmon/hwmon*/power1_average, power1_input, gpu_metrics",
    dcgm: "DCGM_FI_DEV_POWER_USAGE",
    dme: "gpu_package_power, gpu_average_package_power, gpu_power_usage",
    ..Metric::of(&series::POWER_USAGE)
};

pub static POWER_LIMIT: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "watts",
    help: "Power limit: current, default, min or max.",
    source: "hwmon/hwmon*/power1_cap, power1_cap_default, power1_cap_min, power1_cap_max",
    dcgm: "DCGM_FI_DEV_POWER_MGMT_LIMIT, DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF, DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN, DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX",
    dme: "",
    ..Metric::of(&series::POWER_LIMIT)
};

pub static ENERGY: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Counter,
    unit: "joules",
    help: "Energy that the GPU has drawn.",
    source: "gpu_metrics, hwmon/hwmon*/energy1_input",
    dcgm: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    dme: "gpu_energy_consumed",
    ..Metric::of(&series::ENERGY)
};

pub static CLOCK: Metric = Metric {
    scope: Scope::Gpu,
    kind: Kind::Gauge,
    unit: "hertz",
    help: "Clock by domain and instance.",
    source: "hwmon/hwmon*/freq*_input, pp_dpm_*, gpu_metrics",
    dcgm: "DCGM_FI_DEV_SM_CLOCK, DCGM_FI_DEV_MEM_CLOCK, DCGM_FI_DEV_VIDEO_CLOCK",
    dme: "gpu_clock",
    ..Metric::of(&series::CLOCK)
};

pub static VOLTAGE: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "volts",
    help: "Voltage by rail.",
    source: "hwmon/hwmon*/in*_input",
    dcgm: "",
    dme: "gpu_voltage, gpu_gfx_voltage, gpu_memory_voltage",
    ..Metric::of(&series::VOLTAGE)
};

pub static FAN_SPEED: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "rpm",
    help: "Speed of a fan.",
    source: "hwmon/hwmon*/fan*_input",
    dcgm: "DCGM_FI_DEV_FAN_SPEED",
    dme: "",
    ..Metric::of(&series::FAN_SPEED)
};

pub static FAN_MAX: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "rpm",
    help: "Highest speed of a fan.",
    source: "hwmon/hwmon*/fan*_max",
    dcgm: "",
    dme: "",
    ..Metric::of(&series::FAN_MAX)
};

pub static THROTTLE_STATUS: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "",
    help: "1 while the firmware limits the clocks for this reason: thermal, power, current or other. A hotspot counts only within 5 °C of its critical limit: some firmware reports it at idle.",
    source: "gpu_metrics, hwmon/hwmon*/temp2_input, temp2_crit",
    dcgm: "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    dme: "",
    ..Metric::of(&series::THROTTLE_STATUS)
};

pub static THROTTLE_RESIDENCY: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Counter,
    unit: "",
    help: "Firmware samples in which a limit was active, by reason.",
    source: "gpu_metrics",
    dcgm: "DCGM_FI_DEV_POWER_VIOLATION, DCGM_FI_DEV_THERMAL_VIOLATION",
    dme: "gpu_violation_*_residency_accumulated",
    ..Metric::of(&series::THROTTLE_RESIDENCY)
};

pub static THROTTLE_SAMPLES: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Counter,
    unit: "",
    help: "Firmware samples taken: the measure of rocm_throttle_residency_total.",
    source: "gpu_metrics",
    dcgm: "",
    dme: "gpu_violation_current_accumulated_counter",
    ..Metric::of(&series::THROTTLE_SAMPLES)
};
