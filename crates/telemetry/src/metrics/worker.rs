//! Metrics of what rocworker manages, and of the exporter itself.

use crate::metric::{Kind, Metric, Scope};

pub static DRIFT: Metric = Metric {
    name: "rocm_drift_paths",
    scope: Scope::Machine,
    kind: Kind::Gauge,
    unit: "paths",
    help: "Managed paths by state: differs, contested, blocked, failed.",
    labels: &["state"],
    source: "/run/rocworker/exporter.json",
    ..Metric::OF_NO_READING
};

pub static PENDING_RESTARTS: Metric = Metric {
    name: "rocm_pending_restarts",
    scope: Scope::Machine,
    kind: Kind::Gauge,
    unit: "units",
    help: "Restarts and other effects that are pending.",
    source: "/run/rocworker/exporter.json",
    ..Metric::OF_NO_READING
};

pub static PUBLISHED: Metric = Metric {
    name: "rocm_daemon_published_timestamp_seconds",
    scope: Scope::Machine,
    kind: Kind::Gauge,
    unit: "seconds",
    help: "When rocworker's daemon wrote what it publishes, since 1970; absent when that is older than 30 s.",
    source: "/run/rocworker/exporter.json",
    ..Metric::OF_NO_READING
};

pub static READ_ERRORS: Metric = Metric {
    name: "rocm_exporter_read_errors_total",
    scope: Scope::Machine,
    kind: Kind::Counter,
    help: "Reads that failed, by file; a file that is not there is no failure.",
    labels: &["file"],
    source: "each file",
    ..Metric::OF_NO_READING
};

pub static STUCK_READS: Metric = Metric {
    name: "rocm_exporter_stuck_reads",
    scope: Scope::Machine,
    kind: Kind::Gauge,
    unit: "reads",
    help: "Reads that have not come back; their files are not read again until they do.",
    source: "each file",
    ..Metric::OF_NO_READING
};

pub static SCRAPE_DURATION: Metric = Metric {
    name: "rocm_exporter_scrape_duration_seconds",
    scope: Scope::Machine,
    kind: Kind::Gauge,
    unit: "seconds",
    help: "How long reading the machine took for this scrape.",
    source: "",
    ..Metric::OF_NO_READING
};

pub static BUILD: Metric = Metric {
    name: "rocm_exporter_build_info",
    scope: Scope::Machine,
    kind: Kind::Info,
    help: "Version of rocworker-exporter.",
    labels: &["version"],
    source: "",
    ..Metric::OF_NO_READING
};
