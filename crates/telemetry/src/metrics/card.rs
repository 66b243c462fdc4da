//! Identity, temperature, activity and memory.

use inventory::series;

use crate::metric::{Kind, Metric, Scope};

pub static GPU_INFO: Metric = Metric {
    name: "rocm_gpu_info",
    scope: Scope::Gpu,
    kind: Kind::Info,
    help: "Identity of the GPU.",
    labels: &["device_id", "vbios", "driver_version", "compute_partition", "memory_partition"],
    source: "uevent, product_name, unique_id, vbios_version, current_compute_partition, current_memory_partition, /sys/module/amdgpu/version",
    dcgm: "DCGM_FI_DEV_NAME, DCGM_FI_DEV_UUID, DCGM_FI_DEV_VBIOS_VERSION",
    ..Metric::OF_NO_READING
};

pub static GPU_SUSPENDED: Metric = Metric {
    name: "rocm_gpu_suspended",
    scope: Scope::Card,
    kind: Kind::Gauge,
    help: "1 while the kernel has suspended the GPU; then its only other series are rocm_gpu_info and the daemon's judgement.",
    source: "power/runtime_status",
    ..Metric::OF_NO_READING
};

pub static GPU_TEMPERATURE: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "celsius",
    help: "Temperature by sensor.",
    source: "hwmon/hwmon*/temp*_input, gpu_metrics",
    dcgm: "DCGM_FI_DEV_GPU_TEMP, DCGM_FI_DEV_MEMORY_TEMP",
    dme: "gpu_edge_temperature, gpu_junction_temperature, gpu_memory_temperature, gpu_hbm_temperature",
    ..Metric::of(&series::TEMPERATURE)
};

pub static GPU_TEMPERATURE_LIMIT: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "celsius",
    help: "Limit that the device sets for a sensor: critical or emergency.",
    source: "hwmon/hwmon*/temp*_crit, temp*_emergency",
    dcgm: "DCGM_FI_DEV_SLOWDOWN_TEMP, DCGM_FI_DEV_SHUTDOWN_TEMP",
    dme: "",
    ..Metric::of(&series::TEMPERATURE_LIMIT)
};

pub static GPU_UTILIZATION: Metric = Metric {
    scope: Scope::Gpu,
    kind: Kind::Gauge,
    unit: "percent",
    help: "Share of time in which the graphics and compute engine was busy.",
    source: "gpu_busy_percent, gpu_metrics, xcp/xcp_metrics",
    dcgm: "DCGM_FI_DEV_GPU_UTIL",
    dme: "gpu_gfx_activity",
    ..Metric::of(&series::UTILIZATION)
};

pub static MEMORY_UTILIZATION: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "percent",
    help: "Share of time in which the memory controller was busy.",
    source: "mem_busy_percent, gpu_metrics",
    dcgm: "DCGM_FI_DEV_MEM_COPY_UTIL",
    dme: "gpu_umc_activity",
    ..Metric::of(&series::MEMORY_UTILIZATION)
};

pub static ENGINE_BUSY: Metric = Metric {
    scope: Scope::Gpu,
    kind: Kind::Gauge,
    unit: "ratio",
    help: "Share of time in which an engine was busy, by engine and instance.",
    source: "gpu_metrics, vcn_busy_percent, xcp/xcp_metrics",
    dcgm: "DCGM_FI_DEV_ENC_UTIL, DCGM_FI_DEV_DEC_UTIL",
    dme: "gpu_gfx_busy_instantaneous, gpu_vcn_busy_instantaneous, gpu_jpeg_busy_instantaneous",
    ..Metric::of(&series::ENGINE_BUSY)
};

pub static MEMORY_USED: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "bytes",
    help: "GPU memory in use: VRAM, on an APU GTT.",
    source: "mem_info_vram_used, mem_info_gtt_used",
    dcgm: "DCGM_FI_DEV_FB_USED",
    dme: "gpu_used_vram",
    ..Metric::of(&series::MEMORY_USED)
};

pub static MEMORY_TOTAL: Metric = Metric {
    scope: Scope::Gpu,
    kind: Kind::Untyped,
    unit: "bytes",
    help: "GPU memory: VRAM, on an APU GTT, of a partition what KFD gives it.",
    source: "mem_info_vram_total, mem_info_gtt_total, /sys/class/kfd/kfd/topology/nodes/*/mem_banks",
    dcgm: "DCGM_FI_DEV_FB_TOTAL",
    dme: "gpu_total_vram",
    ..Metric::of(&series::MEMORY_TOTAL)
};

pub static MEMORY_POOL_USED: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "bytes",
    help: "Memory in use by pool: vram, visible_vram, gtt.",
    source: "mem_info_*_used",
    dcgm: "DCGM_FI_DEV_FB_USED, DCGM_FI_DEV_BAR1_USED",
    dme: "gpu_used_vram, gpu_used_visible_vram, gpu_used_gtt",
    ..Metric::of(&series::MEMORY_POOL_USED)
};

pub static MEMORY_POOL_SIZE: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "bytes",
    help: "Size of a memory pool: vram, visible_vram, gtt.",
    source: "mem_info_*_total",
    dcgm: "DCGM_FI_DEV_FB_TOTAL, DCGM_FI_DEV_BAR1_TOTAL",
    dme: "gpu_total_vram, gpu_total_visible_vram, gpu_total_gtt",
    ..Metric::of(&series::MEMORY_POOL_SIZE)
};
