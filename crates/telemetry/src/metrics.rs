//! The metrics, in the order in which the exposition and docs/metrics.md have them.

use crate::metric::{Kind, Metric};

/// All of them.
pub static ALL: [&Metric; 53] = [
    &GPU_INFO,
    &GPU_SUSPENDED,
    &GPU_TEMPERATURE,
    &GPU_TEMPERATURE_LIMIT,
    &GPU_UTILIZATION,
    &MEMORY_UTILIZATION,
    &ENGINE_BUSY,
    &MEMORY_USED,
    &MEMORY_TOTAL,
    &MEMORY_POOL_USED,
    &MEMORY_POOL_SIZE,
    &POWER_USAGE,
    &POWER_LIMIT,
    &ENERGY,
    &CLOCK,
    &VOLTAGE,
    &FAN_SPEED,
    &FAN_MAX,
    &THROTTLE_STATUS,
    &THROTTLE_RESIDENCY,
    &THROTTLE_SAMPLES,
    &PCIE_TX,
    &PCIE_RX,
    &PCIE_BANDWIDTH,
    &PCIE_SPEED,
    &PCIE_WIDTH,
    &PCIE_REPLAYS,
    &PCIE_ERRORS,
    &RAS_ERRORS,
    &ECC_UNCORRECTABLE,
    &RETIRED_PAGES,
    &XGMI_LINKS,
    &XGMI_TRAFFIC,
    &XGMI_SPEED,
    &XGMI_WIDTH,
    &XGMI_UP,
    &XGMI_ERROR,
    &GPU_HANG,
    &FIRMWARE,
    &PROCESSES,
    &PROCESS_VRAM,
    &PROCESS_CU,
    &PROCESS_QUEUES,
    &CONTAINER_GPU_SECONDS,
    &CONTAINER_VRAM_PEAK,
    &LEASE,
    &DRIFT,
    &PENDING_RESTARTS,
    &PUBLISHED,
    &READ_ERRORS,
    &STUCK_READS,
    &SCRAPE_DURATION,
    &BUILD,
];

pub static GPU_INFO: Metric = Metric {
    name: "rocm_gpu_info",
    kind: Kind::Info,
    unit: "",
    help: "Identity of the GPU.",
    labels: &["device_id", "vbios", "driver_version", "product"],
    source: "uevent, vbios_version, /sys/module/amdgpu/version",
    dcgm: "",
    dme: "",
};

pub static GPU_SUSPENDED: Metric = Metric {
    name: "rocm_gpu_suspended",
    kind: Kind::Gauge,
    unit: "",
    help: "1 while the kernel has suspended the GPU; its other series are absent then.",
    labels: &[],
    source: "power/runtime_status",
    dcgm: "",
    dme: "",
};

pub static GPU_TEMPERATURE: Metric = Metric {
    name: "rocm_gpu_temperature",
    kind: Kind::Gauge,
    unit: "celsius",
    help: "Temperature by sensor.",
    labels: &["sensor"],
    source: "hwmon/hwmon*/temp*_input, gpu_metrics",
    dcgm: "DCGM_FI_DEV_GPU_TEMP",
    dme: "gpu_edge_temperature, gpu_junction_temperature, gpu_memory_temperature",
};

pub static GPU_TEMPERATURE_LIMIT: Metric = Metric {
    name: "rocm_gpu_temperature_limit_celsius",
    kind: Kind::Gauge,
    unit: "celsius",
    help: "Limit that the device sets for a sensor: critical or emergency.",
    labels: &["sensor", "limit"],
    source: "hwmon/hwmon*/temp*_crit, temp*_emergency",
    dcgm: "DCGM_FI_DEV_SLOWDOWN_TEMP, DCGM_FI_DEV_SHUTDOWN_TEMP",
    dme: "",
};

pub static GPU_UTILIZATION: Metric = Metric {
    name: "rocm_gpu_utilization",
    kind: Kind::Gauge,
    unit: "percent",
    help: "Share of time in which the graphics and compute engine was busy.",
    labels: &[],
    source: "gpu_busy_percent, gpu_metrics, xcp/xcp_metrics",
    dcgm: "DCGM_FI_DEV_GPU_UTIL",
    dme: "gpu_gfx_activity",
};

pub static MEMORY_UTILIZATION: Metric = Metric {
    name: "rocm_memory_utilization",
    kind: Kind::Gauge,
    unit: "percent",
    help: "Share of time in which the memory controller was busy.",
    labels: &[],
    source: "mem_busy_percent, gpu_metrics",
    dcgm: "DCGM_FI_DEV_MEM_COPY_UTIL",
    dme: "gpu_umc_activity",
};

pub static ENGINE_BUSY: Metric = Metric {
    name: "rocm_engine_busy_ratio",
    kind: Kind::Gauge,
    unit: "ratio",
    help: "Share of time in which an engine was busy, by engine and instance.",
    labels: &["engine", "instance"],
    source: "gpu_metrics, vcn_busy_percent, xcp/xcp_metrics",
    dcgm: "DCGM_FI_DEV_ENC_UTIL, DCGM_FI_DEV_DEC_UTIL",
    dme: "gpu_vcn_activity, gpu_jpeg_activity",
};

pub static MEMORY_USED: Metric = Metric {
    name: "rocm_memory_used",
    kind: Kind::Gauge,
    unit: "bytes",
    help: "GPU memory in use: VRAM, on an APU GTT.",
    labels: &[],
    source: "mem_info_vram_used, mem_info_gtt_used",
    dcgm: "DCGM_FI_DEV_FB_USED",
    dme: "gpu_used_vram",
};

pub static MEMORY_TOTAL: Metric = Metric {
    name: "rocm_memory_total",
    kind: Kind::Untyped,
    unit: "bytes",
    help: "GPU memory: VRAM, on an APU GTT, of a partition what KFD gives it.",
    labels: &[],
    source: "mem_info_vram_total, mem_info_gtt_total, /sys/class/kfd/kfd/topology/nodes/*/mem_banks",
    dcgm: "DCGM_FI_DEV_FB_TOTAL",
    dme: "gpu_total_vram",
};

pub static MEMORY_POOL_USED: Metric = Metric {
    name: "rocm_memory_pool_used_bytes",
    kind: Kind::Gauge,
    unit: "bytes",
    help: "Memory in use by pool: vram, visible_vram, gtt.",
    labels: &["pool"],
    source: "mem_info_*_used",
    dcgm: "",
    dme: "gpu_used_vram, gpu_used_visible_vram, gpu_used_gtt",
};

pub static MEMORY_POOL_SIZE: Metric = Metric {
    name: "rocm_memory_pool_size_bytes",
    kind: Kind::Gauge,
    unit: "bytes",
    help: "Size of a memory pool: vram, visible_vram, gtt.",
    labels: &["pool"],
    source: "mem_info_*_total",
    dcgm: "",
    dme: "gpu_total_vram, gpu_total_visible_vram, gpu_total_gtt",
};

pub static POWER_USAGE: Metric = Metric {
    name: "rocm_power_usage",
    kind: Kind::Gauge,
    unit: "watts",
    help: "Power that the GPU draws.",
    labels: &[],
    source: "hwmon/hwmon*/power1_average, power1_input, gpu_metrics",
    dcgm: "DCGM_FI_DEV_POWER_USAGE",
    dme: "gpu_package_power, gpu_average_package_power",
};

pub static POWER_LIMIT: Metric = Metric {
    name: "rocm_power_limit_watts",
    kind: Kind::Gauge,
    unit: "watts",
    help: "Power limit: current, default, min or max.",
    labels: &["limit"],
    source: "hwmon/hwmon*/power1_cap, power1_cap_default, power1_cap_min, power1_cap_max",
    dcgm: "DCGM_FI_DEV_POWER_MGMT_LIMIT",
    dme: "",
};

pub static ENERGY: Metric = Metric {
    name: "rocm_energy_joules_total",
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
    kind: Kind::Gauge,
    unit: "hertz",
    help: "Clock by domain and instance.",
    labels: &["clock", "instance"],
    source: "hwmon/hwmon*/freq*_input, pp_dpm_*, gpu_metrics",
    dcgm: "DCGM_FI_DEV_SM_CLOCK, DCGM_FI_DEV_MEM_CLOCK",
    dme: "gpu_clock",
};

pub static VOLTAGE: Metric = Metric {
    name: "rocm_voltage_volts",
    kind: Kind::Gauge,
    unit: "volts",
    help: "Voltage by rail.",
    labels: &["rail"],
    source: "hwmon/hwmon*/in*_input",
    dcgm: "",
    dme: "gpu_voltage, gpu_memory_voltage",
};

pub static FAN_SPEED: Metric = Metric {
    name: "rocm_fan_speed_rpm",
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
    kind: Kind::Gauge,
    unit: "",
    help: "1 while the firmware limits the clocks for this reason: thermal, power, current or other.",
    labels: &["reason"],
    source: "gpu_metrics",
    dcgm: "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
    dme: "",
};

pub static THROTTLE_RESIDENCY: Metric = Metric {
    name: "rocm_throttle_residency_total",
    kind: Kind::Counter,
    unit: "",
    help: "Firmware samples in which a limit was active, by reason.",
    labels: &["reason"],
    source: "gpu_metrics",
    dcgm: "",
    dme: "gpu_violation_*_residency_accumulated",
};

pub static THROTTLE_SAMPLES: Metric = Metric {
    name: "rocm_throttle_samples_total",
    kind: Kind::Counter,
    unit: "",
    help: "Firmware samples taken: the measure of rocm_throttle_residency_total.",
    labels: &[],
    source: "gpu_metrics",
    dcgm: "",
    dme: "gpu_violation_current_accumulated_counter",
};

pub static PCIE_TX: Metric = Metric {
    name: "rocm_pcie_tx",
    kind: Kind::Gauge,
    unit: "bytes per second",
    help: "PCIe traffic that the GPU sent, at most: packets times the maximum payload.",
    labels: &[],
    source: "pcie_bw",
    dcgm: "DCGM_FI_DEV_PCIE_TX_THROUGHPUT",
    dme: "pcie_tx",
};

pub static PCIE_RX: Metric = Metric {
    name: "rocm_pcie_rx",
    kind: Kind::Gauge,
    unit: "bytes per second",
    help: "PCIe traffic that the GPU received, at most: packets times the maximum payload.",
    labels: &[],
    source: "pcie_bw",
    dcgm: "DCGM_FI_DEV_PCIE_RX_THROUGHPUT",
    dme: "pcie_rx",
};

pub static PCIE_BANDWIDTH: Metric = Metric {
    name: "rocm_pcie_bandwidth_bytes_per_second",
    kind: Kind::Gauge,
    unit: "bytes per second",
    help: "PCIe traffic in both directions, as the firmware measures it.",
    labels: &[],
    source: "gpu_metrics",
    dcgm: "",
    dme: "pcie_bandwidth",
};

pub static PCIE_SPEED: Metric = Metric {
    name: "rocm_pcie_link_speed_transfers_per_second",
    kind: Kind::Gauge,
    unit: "transfers per second",
    help: "PCIe link speed by lane: current or max.",
    labels: &["link"],
    source: "current_link_speed, max_link_speed, gpu_metrics",
    dcgm: "DCGM_FI_DEV_PCIE_LINK_GEN",
    dme: "pcie_speed, pcie_max_speed",
};

pub static PCIE_WIDTH: Metric = Metric {
    name: "rocm_pcie_link_width_lanes",
    kind: Kind::Gauge,
    unit: "lanes",
    help: "PCIe link width: current or max.",
    labels: &["link"],
    source: "current_link_width, max_link_width, gpu_metrics",
    dcgm: "DCGM_FI_DEV_PCIE_LINK_WIDTH",
    dme: "",
};

pub static PCIE_REPLAYS: Metric = Metric {
    name: "rocm_pcie_replays_total",
    kind: Kind::Counter,
    unit: "",
    help: "PCIe packets that were sent again.",
    labels: &[],
    source: "pcie_replay_count, gpu_metrics",
    dcgm: "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    dme: "pcie_replay_count",
};

pub static PCIE_ERRORS: Metric = Metric {
    name: "rocm_pcie_errors_total",
    kind: Kind::Counter,
    unit: "",
    help: "PCIe link errors by kind: replay_rollover, nak_sent, nak_received, recovery.",
    labels: &["kind"],
    source: "gpu_metrics",
    dcgm: "",
    dme: "pcie_recovery_count, pcie_replay_rollover_count, pcie_nack_sent_count, pcie_nack_received_count",
};

pub static RAS_ERRORS: Metric = Metric {
    name: "rocm_ras_errors_total",
    kind: Kind::Counter,
    unit: "",
    help: "RAS errors by block and severity: correctable, deferred, uncorrectable.",
    labels: &["block", "severity"],
    source: "ras/*_err_count",
    dcgm: "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL, DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    dme: "gpu_ecc_correct_*, gpu_ecc_uncorrect_*",
};

pub static ECC_UNCORRECTABLE: Metric = Metric {
    name: "rocm_gpu_ecc_errors_uncorrectable",
    kind: Kind::Gauge,
    unit: "",
    help: "Uncorrectable errors of all RAS blocks since the driver was loaded.",
    labels: &[],
    source: "ras/*_err_count",
    dcgm: "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    dme: "gpu_ecc_uncorrect_total",
};

pub static RETIRED_PAGES: Metric = Metric {
    name: "rocm_retired_pages",
    kind: Kind::Gauge,
    unit: "pages",
    help: "Bad pages of VRAM by state: retired, pending, unreservable.",
    labels: &["state"],
    source: "ras/gpu_vram_bad_pages",
    dcgm: "DCGM_FI_DEV_RETIRED_SBE, DCGM_FI_DEV_RETIRED_DBE, DCGM_FI_DEV_RETIRED_PENDING",
    dme: "",
};

pub static XGMI_LINKS: Metric = Metric {
    name: "rocm_xgmi_links",
    kind: Kind::Gauge,
    unit: "links",
    help: "XGMI links that KFD names between this GPU and others.",
    labels: &[],
    source: "/sys/class/kfd/kfd/topology/nodes/*/io_links",
    dcgm: "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    dme: "",
};

pub static XGMI_TRAFFIC: Metric = Metric {
    name: "rocm_xgmi_traffic_bytes_total",
    kind: Kind::Counter,
    unit: "bytes",
    help: "XGMI traffic by link and direction: read, write.",
    labels: &["link", "direction"],
    source: "gpu_metrics",
    dcgm: "DCGM_FI_DEV_NVLINK_TX_BANDWIDTH_L0, DCGM_FI_DEV_NVLINK_RX_BANDWIDTH_L0",
    dme: "xgmi_neighbor_*_tx_throughput, xgmi_link_rx, xgmi_link_tx",
};

pub static XGMI_SPEED: Metric = Metric {
    name: "rocm_xgmi_link_speed_bits_per_second",
    kind: Kind::Gauge,
    unit: "bits per second",
    help: "Speed of an XGMI lane.",
    labels: &[],
    source: "gpu_metrics",
    dcgm: "",
    dme: "",
};

pub static XGMI_WIDTH: Metric = Metric {
    name: "rocm_xgmi_link_width_lanes",
    kind: Kind::Gauge,
    unit: "lanes",
    help: "Width of an XGMI link.",
    labels: &[],
    source: "gpu_metrics",
    dcgm: "",
    dme: "",
};

pub static XGMI_UP: Metric = Metric {
    name: "rocm_xgmi_link_up",
    kind: Kind::Gauge,
    unit: "",
    help: "1 where an XGMI link is up, 0 where it is down.",
    labels: &["link"],
    source: "gpu_metrics",
    dcgm: "",
    dme: "",
};

pub static XGMI_ERROR: Metric = Metric {
    name: "rocm_xgmi_error",
    kind: Kind::Gauge,
    unit: "",
    help: "XGMI error state since the last read: 0 none, 1 one, 2 several.",
    labels: &[],
    source: "xgmi_error",
    dcgm: "",
    dme: "xgmi_neighbor_*",
};

pub static GPU_HANG: Metric = Metric {
    name: "rocm_gpu_hang",
    kind: Kind::Gauge,
    unit: "",
    help: "1 while the kernel holds a dump of a hang of this GPU.",
    labels: &[],
    source: "/sys/class/devcoredump/*/failing_device",
    dcgm: "DCGM_FI_DEV_XID_ERRORS",
    dme: "gpu_health",
};

pub static FIRMWARE: Metric = Metric {
    name: "rocm_firmware_info",
    kind: Kind::Info,
    unit: "",
    help: "Version of a firmware by name.",
    labels: &["firmware", "version"],
    source: "fw_version/*",
    dcgm: "",
    dme: "",
};

pub static PROCESSES: Metric = Metric {
    name: "rocm_gpu_processes",
    kind: Kind::Gauge,
    unit: "processes",
    help: "Compute processes that use the GPU.",
    labels: &[],
    source: "/sys/class/kfd/kfd/proc",
    dcgm: "",
    dme: "",
};

pub static PROCESS_VRAM: Metric = Metric {
    name: "rocm_process_vram_bytes",
    kind: Kind::Gauge,
    unit: "bytes",
    help: "VRAM of a process on a GPU.",
    labels: &["pid", "name", "container", "namespace", "pod", "unit"],
    source: "/sys/class/kfd/kfd/proc/*/vram_*, /proc/*/fdinfo/*",
    dcgm: "DCGM_FI_DEV_FB_USED",
    dme: "gpu_used_vram",
};

pub static PROCESS_CU: Metric = Metric {
    name: "rocm_process_compute_units",
    kind: Kind::Gauge,
    unit: "compute units",
    help: "Compute units that a process occupies on a GPU.",
    labels: &["pid", "name", "container", "namespace", "pod", "unit"],
    source: "/sys/class/kfd/kfd/proc/*/stats_*/cu_occupancy",
    dcgm: "",
    dme: "",
};

pub static PROCESS_QUEUES: Metric = Metric {
    name: "rocm_process_queues",
    kind: Kind::Gauge,
    unit: "queues",
    help: "Queues of a process on a GPU.",
    labels: &["pid", "name", "container", "namespace", "pod", "unit"],
    source: "/sys/class/kfd/kfd/proc/*/queues/*/gpuid",
    dcgm: "",
    dme: "",
};

pub static CONTAINER_GPU_SECONDS: Metric = Metric {
    name: "rocm_container_gpu_seconds_total",
    kind: Kind::Counter,
    unit: "seconds",
    help: "Time in which a process of the container held the GPU, since the exporter started.",
    labels: &["container", "namespace", "pod", "unit"],
    source: "/sys/class/kfd/kfd/proc, /proc/*/cgroup",
    dcgm: "",
    dme: "",
};

pub static CONTAINER_VRAM_PEAK: Metric = Metric {
    name: "rocm_container_vram_peak_bytes",
    kind: Kind::Gauge,
    unit: "bytes",
    help: "Most VRAM that the container's processes had at a scrape, since the exporter started.",
    labels: &["container", "namespace", "pod", "unit"],
    source: "/sys/class/kfd/kfd/proc/*/vram_*",
    dcgm: "",
    dme: "",
};

pub static LEASE: Metric = Metric {
    name: "rocm_lease_info",
    kind: Kind::Info,
    unit: "",
    help: "A container's exclusive lease of the GPU.",
    labels: &["container"],
    source: "/run/rocworker/exporter.json",
    dcgm: "",
    dme: "",
};

pub static DRIFT: Metric = Metric {
    name: "rocm_drift_paths",
    kind: Kind::Gauge,
    unit: "paths",
    help: "Managed paths by state: differs, contested, blocked, failed.",
    labels: &["state"],
    source: "/run/rocworker/exporter.json",
    dcgm: "",
    dme: "",
};

pub static PENDING_RESTARTS: Metric = Metric {
    name: "rocm_pending_restarts",
    kind: Kind::Gauge,
    unit: "units",
    help: "Restarts and other effects that are pending.",
    labels: &[],
    source: "/run/rocworker/exporter.json",
    dcgm: "",
    dme: "",
};

pub static PUBLISHED: Metric = Metric {
    name: "rocm_daemon_published_timestamp_seconds",
    kind: Kind::Gauge,
    unit: "seconds",
    help: "When rocworker's daemon wrote what it publishes, since 1970; absent when that is older than 30 s.",
    labels: &[],
    source: "/run/rocworker/exporter.json",
    dcgm: "",
    dme: "",
};

pub static READ_ERRORS: Metric = Metric {
    name: "rocm_exporter_read_errors_total",
    kind: Kind::Counter,
    unit: "",
    help: "Reads that failed, by file; a file that is not there is no failure.",
    labels: &["file"],
    source: "each file",
    dcgm: "",
    dme: "",
};

pub static STUCK_READS: Metric = Metric {
    name: "rocm_exporter_stuck_reads",
    kind: Kind::Gauge,
    unit: "reads",
    help: "Reads that have not come back; their files are not read again until they do.",
    labels: &[],
    source: "each file",
    dcgm: "",
    dme: "",
};

pub static SCRAPE_DURATION: Metric = Metric {
    name: "rocm_exporter_scrape_duration_seconds",
    kind: Kind::Gauge,
    unit: "seconds",
    help: "How long reading the machine took for this scrape.",
    labels: &[],
    source: "",
    dcgm: "",
    dme: "",
};

pub static BUILD: Metric = Metric {
    name: "rocm_exporter_build_info",
    kind: Kind::Info,
    unit: "",
    help: "Version of rocworker-exporter.",
    labels: &["version"],
    source: "",
    dcgm: "",
    dme: "",
};
