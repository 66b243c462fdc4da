//! TensorFusion's accelerator ABI over AMD's GPUs: what a hypervisor calls to list GPUs, their links, readings and processes.
//!
//! Everything is read from sysfs, so that the GPUs are listed where the hypervisor's container has neither /dev/kfd nor
//! /dev/dri. Nothing is kept between two calls but PCIe traffic, the paths that hang and what was logged: a call after
//! `AccelShutdown` answers as any other. No panic leaves a function, and no thread of this library takes a signal.
//! Only where memory runs out, the process ends.
//!
//! `cargo xtask provider` builds `libaccelerator_amd.so` with the functions of [`today`], and with the feature `v1`
//! `libaccelerator_amd_v1.so` with those of [`v1`].
#![allow(non_snake_case, reason = "the names are the ABI's")]

mod calls;
mod device;
mod ffi;
mod links;
mod log;
mod metrics;
mod mounts;
mod offered;
mod process;
mod session;
pub mod today;
pub mod types;
pub mod v1;

pub use ffi::AccelResult;
pub use log::LogCallback;
