//! Metrics of the daemon's judgement of each GPU (docs/health.md).

use crate::metric::{Kind, Metric, Scope};

pub static GPU_HEALTH_SCORE: Metric = Metric {
    name: "rocm_gpu_health_score",
    scope: Scope::Card,
    kind: Kind::Gauge,
    help: "How well the GPU is, from 0 to 100; absent where it is not known.",
    source: "/run/rocworker/health.json",
    dme: "gpu_health",
    ..Metric::OF_NO_READING
};

pub static GPU_HEALTH_STATE: Metric = Metric {
    name: "rocm_gpu_health_state",
    scope: Scope::Card,
    kind: Kind::Gauge,
    help: "1 for the state that the GPU is in, 0 for the others: healthy, degraded, unhealthy, unknown.",
    labels: &["state"],
    source: "/run/rocworker/health.json",
    ..Metric::OF_NO_READING
};

pub static GPU_HANG: Metric = Metric {
    name: "rocm_gpu_hang",
    scope: Scope::Card,
    kind: Kind::Gauge,
    help: "1 while the GPU hangs by the kernel's log or its dump, 0 while neither says so; absent where it is not known.",
    source: "/run/rocworker/health.json",
    dcgm: "DCGM_FI_DEV_XID_ERRORS",
    ..Metric::OF_NO_READING
};

pub static GPU_QUARANTINED: Metric = Metric {
    name: "rocm_gpu_quarantined",
    scope: Scope::Card,
    kind: Kind::Gauge,
    help: "1 while the wrapper keeps containers off the GPU: it is or was a short while ago unhealthy, and wrapper.quarantine is true.",
    source: "/run/rocworker/health.json, /etc/rocworker/wrapper.json",
    ..Metric::OF_NO_READING
};
