//! RAS, hangs, firmware.

use inventory::series;

use crate::metric::{Kind, Metric, Scope};

pub static RAS_ERRORS: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Counter,
    unit: "",
    help: "RAS errors by block and severity: correctable, deferred, uncorrectable; XGMI's are those of block xgmi_wafl.",
    source: "ras/*_err_count",
    dcgm: "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL, DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    dme: "gpu_ecc_correct_*, gpu_ecc_deferred_*, gpu_ecc_uncorrect_*",
    ..Metric::of(&series::RAS_ERRORS)
};

pub static ECC_UNCORRECTABLE: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "",
    help: "Uncorrectable errors of all RAS blocks since the driver was loaded; absent while the count of any block cannot be read.",
    source: "ras/*_err_count",
    dcgm: "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    dme: "gpu_ecc_uncorrect_total",
    ..Metric::of(&series::ECC_UNCORRECTABLE)
};

pub static RETIRED_PAGES: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "pages",
    help: "Bad pages of VRAM by state: retired, pending, unreservable.",
    source: "ras/gpu_vram_bad_pages",
    dcgm: "DCGM_FI_DEV_RETIRED_SBE, DCGM_FI_DEV_RETIRED_DBE, DCGM_FI_DEV_RETIRED_PENDING",
    dme: "",
    ..Metric::of(&series::RETIRED_PAGES)
};

pub static GPU_DEVCOREDUMP: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Gauge,
    unit: "",
    help: "1 while the kernel holds a dump of a hang of this GPU, 0 while it holds none; absent where it makes none.",
    source: "/sys/class/devcoredump/*/failing_device, /sys/class/devcoredump/disabled",
    dcgm: "",
    dme: "",
    ..Metric::of(&series::DEVCOREDUMP)
};

pub static FIRMWARE: Metric = Metric {
    scope: Scope::Card,
    kind: Kind::Info,
    unit: "",
    help: "Version of a firmware by name.",
    source: "fw_version/*",
    dcgm: "",
    dme: "",
    ..Metric::of(&series::FIRMWARE)
};
