//! The metrics, in the order in which the exposition and docs/metrics.md have them.

mod card;
mod errors;
mod health;
mod hip;
mod link;
mod power;
mod processes;
mod worker;

use crate::metric::Metric;

pub use card::*;
pub use errors::*;
pub use health::*;
pub use hip::*;
pub use link::*;
pub use power::*;
pub use processes::*;
pub use worker::*;

/// Every metric, in the order of the exposition.
pub static ALL: [&Metric; 64] = [
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
    &GPU_DEVCOREDUMP,
    &GPU_HEALTH_SCORE,
    &GPU_HEALTH_STATE,
    &GPU_HANG,
    &GPU_QUARANTINED,
    &FIRMWARE,
    &PROCESSES,
    &PROCESS_VRAM,
    &PROCESS_CU,
    &PROCESS_QUEUES,
    &CONTAINER_GPU_SECONDS,
    &CONTAINER_VRAM_PEAK,
    &LEASE,
    &HIP_CLIENTS,
    &HIP_SERVED,
    &HIP_REFUSED,
    &HIP_CRASHED,
    &HIP_RECEIVED,
    &HIP_SENT,
    &HIP_LAUNCHES,
    &HIP_ALLOCATED,
    &DRIFT,
    &PENDING_RESTARTS,
    &PUBLISHED,
    &READ_ERRORS,
    &STUCK_READS,
    &SCRAPE_DURATION,
    &BUILD,
];
