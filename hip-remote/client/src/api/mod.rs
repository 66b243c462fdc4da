//! HIP's functions, by group. hip_runtime_api.h says what each does.

mod copy;
mod device;
mod error;
mod event;
mod given;
mod launch;
mod memory;
mod module;
mod occupancy;
mod register;
mod stream;
mod unsupported;
