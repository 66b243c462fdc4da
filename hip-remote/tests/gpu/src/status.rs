//! The numbers of hipError_t that this library gives. c/status.c compares them with AMD's header.

pub type Status = i32;

pub const SUCCESS: Status = 0;
pub const INVALID_VALUE: Status = 1;
pub const OUT_OF_MEMORY: Status = 2;
pub const INVALID_DEVICE_FUNCTION: Status = 98;
pub const INVALID_DEVICE: Status = 101;
pub const INVALID_IMAGE: Status = 200;
pub const NO_BINARY_FOR_GPU: Status = 209;
pub const INVALID_HANDLE: Status = 400;
pub const NOT_FOUND: Status = 500;
pub const NOT_READY: Status = 600;
pub const ILLEGAL_ADDRESS: Status = 700;
pub const HOST_MEMORY_ALREADY_REGISTERED: Status = 712;
pub const HOST_MEMORY_NOT_REGISTERED: Status = 713;
pub const LAUNCH_FAILURE: Status = 719;
