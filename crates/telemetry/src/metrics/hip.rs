//! Metrics of rocworker-hip-worker, which serves GPUs to other machines (docs/hip-remote.md).

use crate::metric::{Kind, Metric, Scope};

const OF_WORKER: Metric =
    Metric { kind: Kind::Counter, source: inventory::hip_worker::PATH, ..Metric::OF_NO_READING };

pub static HIP_CLIENTS: Metric = Metric {
    name: "rocm_hip_clients",
    kind: Kind::Gauge,
    unit: "clients",
    help: "Clients that the HIP worker serves now; absent when its file is older than 30 s.",
    ..OF_WORKER
};

pub static HIP_SERVED: Metric = Metric {
    name: "rocm_hip_served_total",
    help: "Clients that the HIP worker has served since it began.",
    ..OF_WORKER
};

pub static HIP_REFUSED: Metric = Metric {
    name: "rocm_hip_refused_total",
    help: "Connections that the HIP worker refused, or that ended before they were served.",
    ..OF_WORKER
};

pub static HIP_CRASHED: Metric = Metric {
    name: "rocm_hip_crashed_total",
    help: "Clients' processes of the HIP worker that ended by a signal.",
    ..OF_WORKER
};

pub static HIP_RECEIVED: Metric = Metric {
    name: "rocm_hip_received_bytes_total",
    unit: "bytes",
    help: "Bytes that came from clients of the HIP worker.",
    ..OF_WORKER
};

pub static HIP_SENT: Metric = Metric {
    name: "rocm_hip_sent_bytes_total",
    unit: "bytes",
    help: "Bytes that went to clients of the HIP worker.",
    ..OF_WORKER
};

pub static HIP_LAUNCHES: Metric = Metric {
    name: "rocm_hip_launches_total",
    scope: Scope::Gpu,
    help: "Kernels that clients of the HIP worker launched.",
    ..OF_WORKER
};

pub static HIP_ALLOCATED: Metric = Metric {
    name: "rocm_hip_allocated_bytes",
    scope: Scope::Gpu,
    kind: Kind::Gauge,
    unit: "bytes",
    help: "Memory that clients of the HIP worker have allocated.",
    ..OF_WORKER
};
