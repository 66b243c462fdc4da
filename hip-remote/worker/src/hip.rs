//! The machine's HIP library, opened while the worker runs.
//!
//! Only symbols that Debian's libraries of ROCm 5.2 and 6.4 both export are asked for. Handles and device
//! pointers are numbers here, so that no other file needs `unsafe`.

mod library;
mod pinned;

pub use library::{Hip, flush_output, show_devices};
pub use pinned::Pinned;

/// A `hipError_t` that is not `hipSuccess`.
pub type Status = i32;

pub const INVALID_VALUE: Status = 1;
pub const OUT_OF_MEMORY: Status = 2;
pub const INVALID_DEVICE_POINTER: Status = 17;
pub const INVALID_DEVICE_FUNCTION: Status = 98;
pub const INVALID_DEVICE: Status = 101;
pub const INVALID_IMAGE: Status = 200;
pub const INVALID_HANDLE: Status = 400;
pub const NOT_FOUND: Status = 500;
pub const NOT_READY: Status = 600;

/// `hipMemcpyDefault`: the library sees by the pointers which way a copy goes. Its number is that of every release.
const MEMCPY_DEFAULT: i32 = 4;
/// `hipEventDisableTiming`.
pub const EVENT_DISABLE_TIMING: u32 = 2;
/// `hipEventBlockingSync`: a thread that waits sleeps.
pub const EVENT_BLOCKING_SYNC: u32 = 1;
