//! The errors that a HIP call returns.

/// A `hipError_t` that is not `hipSuccess`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HipError(pub i32);

pub type Outcome<T = ()> = Result<T, HipError>;

impl HipError {
    pub const INVALID_VALUE: Self = Self(1);
    pub const OUT_OF_MEMORY: Self = Self(2);
    pub const DEINITIALIZED: Self = Self(4);
    pub const INVALID_CONFIGURATION: Self = Self(9);
    pub const INVALID_PITCH: Self = Self(12);
    pub const INVALID_SYMBOL: Self = Self(13);
    pub const INVALID_COPY_DIRECTION: Self = Self(21);
    pub const MISSING_CONFIGURATION: Self = Self(52);
    pub const INVALID_DEVICE_FUNCTION: Self = Self(98);
    pub const NO_DEVICE: Self = Self(100);
    pub const INVALID_DEVICE: Self = Self(101);
    pub const INVALID_IMAGE: Self = Self(200);
    pub const NO_BINARY_FOR_GPU: Self = Self(209);
    pub const PEER_ACCESS_UNSUPPORTED: Self = Self(217);
    pub const FILE_NOT_FOUND: Self = Self(301);
    pub const INVALID_HANDLE: Self = Self(400);
    pub const NOT_FOUND: Self = Self(500);
    pub const NOT_READY: Self = Self(600);
    pub const LAUNCH_FAILURE: Self = Self(719);
    pub const HOST_MEMORY_ALREADY_REGISTERED: Self = Self(712);
    pub const HOST_MEMORY_NOT_REGISTERED: Self = Self(713);
    pub const NOT_SUPPORTED: Self = Self(801);
    pub const UNKNOWN: Self = Self(999);

    /// The connection to a worker is lost, and with it all that the program had on its GPUs.
    ///
    /// `hipErrorContextIsDestroyed` says just that, and PyTorch and others end with it. `hipErrorDeinitialized` would be hidden by
    /// programs that take it for their own exit.
    pub const LOST: Self = Self(709);
}
