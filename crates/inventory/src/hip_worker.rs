//! /run/rocworker/hip-worker.json: what rocworker-hip-worker, as root, tells the exporter.

use serde::{Deserialize, Serialize};

/// The worker writes the file with mode 0644.
pub const PATH: &str = "/run/rocworker/hip-worker.json";

/// Seconds after the write during which the file counts.
pub const FRESH_S: u64 = 30;

/// Counts since the worker began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HipWorker {
    pub schema_version: u32,
    /// Seconds since 1970.
    pub written_at: u64,
    /// The clients of now.
    pub clients: u64,
    pub served: u64,
    pub refused: u64,
    pub crashed: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// By the index of `rocworker detect`, as far as clients have used them.
    pub gpus: Vec<HipGpu>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HipGpu {
    pub launches: u64,
    /// What clients have allocated now.
    pub allocated_bytes: u64,
}
