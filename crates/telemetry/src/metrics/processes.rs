//! Metrics of a GPU's users: processes, containers, leases.

use crate::metric::{Kind, Metric, Scope};

pub static PROCESSES: Metric = Metric {
    name: "rocm_gpu_processes",
    scope: Scope::Gpu,
    kind: Kind::Gauge,
    unit: "processes",
    help: "Compute processes that use the GPU.",
    source: "/sys/class/kfd/kfd/proc",
    ..Metric::OF_NO_READING
};

pub static PROCESS_VRAM: Metric = Metric {
    name: "rocm_process_vram_bytes",
    scope: Scope::Gpu,
    kind: Kind::Gauge,
    unit: "bytes",
    help: "VRAM of a process on a GPU.",
    labels: &["pid", "name", "container", "namespace", "pod", "unit"],
    source: "/sys/class/kfd/kfd/proc/*/vram_*, /proc/*/fdinfo/*",
    ..Metric::OF_NO_READING
};

pub static PROCESS_CU: Metric = Metric {
    name: "rocm_process_compute_units",
    scope: Scope::Gpu,
    kind: Kind::Gauge,
    unit: "compute units",
    help: "Compute units that a process occupies on a GPU.",
    labels: &["pid", "name", "container", "namespace", "pod", "unit"],
    source: "/sys/class/kfd/kfd/proc/*/stats_*/cu_occupancy",
    dme: "gpu_process_cu_occupancy",
    ..Metric::OF_NO_READING
};

pub static PROCESS_QUEUES: Metric = Metric {
    name: "rocm_process_queues",
    scope: Scope::Gpu,
    kind: Kind::Gauge,
    unit: "queues",
    help: "Queues of a process on a GPU.",
    labels: &["pid", "name", "container", "namespace", "pod", "unit"],
    source: "/sys/class/kfd/kfd/proc/*/queues/*/gpuid",
    ..Metric::OF_NO_READING
};

pub static CONTAINER_GPU_SECONDS: Metric = Metric {
    name: "rocm_container_gpu_seconds_total",
    scope: Scope::Gpu,
    kind: Kind::Counter,
    unit: "seconds",
    help: "Time in which a process of the container held the GPU, since the exporter started; counts anew once it has held none for ten minutes.",
    labels: &["container", "namespace", "pod", "unit"],
    source: "/sys/class/kfd/kfd/proc, /proc/*/cgroup",
    ..Metric::OF_NO_READING
};

pub static CONTAINER_VRAM_PEAK: Metric = Metric {
    name: "rocm_container_vram_peak_bytes",
    scope: Scope::Gpu,
    kind: Kind::Gauge,
    unit: "bytes",
    help: "Most VRAM that the container's processes had at a scrape, since the exporter started; counts anew once it has held none for ten minutes.",
    labels: &["container", "namespace", "pod", "unit"],
    source: "/sys/class/kfd/kfd/proc/*/vram_*",
    ..Metric::OF_NO_READING
};

pub static LEASE: Metric = Metric {
    name: "rocm_lease_info",
    scope: Scope::Gpu,
    kind: Kind::Info,
    help: "A container's exclusive lease of the GPU.",
    labels: &["container"],
    source: "/run/rocworker/exporter.json",
    ..Metric::OF_NO_READING
};
