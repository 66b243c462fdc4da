//! The key `compute-runtime`.

use serde::{Deserialize, Serialize};

/// Which vendor's runtime the worker offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComputeRuntime {
    /// AMD's where a usable AMD GPU is.
    Auto,
    Rocm,
    /// Another vendor's: rocworker has nothing to do.
    Cuda,
    None,
}
