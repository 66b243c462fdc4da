//! What should be there of the driver, ROCm and the tools: pure functions of the configuration and what was read.

pub mod apt;
pub mod driver;
pub mod rocm;
