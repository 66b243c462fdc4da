//! RAS, hangs, firmware.

use crate::metric::{Kind, Metric, Scope};

pub static RAS_ERRORS: Metric = Metric {
    name: "rocm_ras_errors_total",
    scope: Scope::Card,
    kind: Kind::Counter,
    unit: "",
    help: "RAS errors by block and severity: correctable, deferred, uncorrectable; XGMI's are those of block xgmi_wafl.",
    labels: &["block", "severity"],
    source: "ras/*_err_count",
    dcgm: "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL, DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    dme: "gpu_ecc_correct_*, gpu_ecc_deferred_*, gpu_ecc_uncorrect_*",
};

pub static ECC_UNCORRECTABLE: Metric = Metric {
    name: "rocm_gpu_ecc_errors_uncorrectable",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "",
    help: "Uncorrectable errors of all RAS blocks since the driver was loaded; absent while the count of any block cannot be read.",
    labels: &[],
    source: "ras/*_err_count",
    dcgm: "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    dme: "gpu_ecc_uncorrect_total",
};

pub static RETIRED_PAGES: Metric = Metric {
    name: "rocm_retired_pages",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "pages",
    help: "Bad pages of VRAM by state: retired, pending, unreservable.",
    labels: &["state"],
    source: "ras/gpu_vram_bad_pages",
    dcgm: "DCGM_FI_DEV_RETIRED_SBE, DCGM_FI_DEV_RETIRED_DBE, DCGM_FI_DEV_RETIRED_PENDING",
    dme: "",
};

pub static GPU_DEVCOREDUMP: Metric = Metric {
    name: "rocm_gpu_devcoredump",
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "",
    help: "1 while the kernel holds a dump of a hang of this GPU, 0 while it holds none; absent where it makes none.",
    labels: &[],
    source: "/sys/class/devcoredump/*/failing_device, /sys/class/devcoredump/disabled",
    dcgm: "",
    dme: "",
};

pub static FIRMWARE: Metric = Metric {
    name: "rocm_firmware_info",
    scope: Scope::Card,
    kind: Kind::Info,
    unit: "",
    help: "Version of a firmware by name.",
    labels: &["firmware", "version"],
    source: "fw_version/*",
    dcgm: "",
    dme: "",
};
