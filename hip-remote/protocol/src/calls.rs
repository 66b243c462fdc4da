//! The calls of version 2: a code, the fields of the request and of the reply.
//!
//! Devices are the worker's ordinals that this client was granted, from 0. Pointers are the worker's own.
//! A stream is 0 (the null stream of the lane's device), [`PER_THREAD`] (the lane's own stream) or a handle
//! from [`StreamCreate`]. Handles mean something to the client's own process of the worker alone.

use crate::field::Field;

/// The stream of the lane that the envelope names (`hipStreamPerThread`).
pub const PER_THREAD: u64 = 2;

/// A request of version 2.
pub trait Call: Field {
    const OP: u16;
    type Reply: Field;
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $op:literal {$($(#[$field_doc:meta])* $field:ident: $type:ty),*}
        -> $reply:ident {$($(#[$reply_doc:meta])* $reply_field:ident: $reply_type:ty),*})*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {$($(#[$field_doc])* pub $field: $type),*}

        calls!(@field $name {$($field: $type),*});
        calls!(@reply $reply {$($(#[$reply_doc])* $reply_field: $reply_type),*});

        impl Call for $name {
            const OP: u16 = $op;
            type Reply = calls!(@type $reply);
        }
    )*

    /// Each call's name, for sentences.
    pub fn name(op: u16) -> Option<&'static str> {
        match op {
            $($op => Some(stringify!($name)),)*
            _ => None,
        }
    }

    /// Each call's code.
    pub const OPS: &[u16] = &[$($op),*];

    /// Gives a macro the name of each call: whoever handles all of them forgets none.
    #[macro_export]
    macro_rules! each_call {
        ($macro:ident) => { $macro! { $($name)* } };
    }
    };
    (@field $name:ident {$($field:ident: $type:ty),*}) => {
        impl Field for $name {
            #[allow(unused_variables)]
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            #[allow(unused_variables)]
            fn take(bytes: &mut &[u8]) -> Option<Self> {
                Some(Self {$($field: <$type>::take(bytes)?),*})
            }
        }
    };
    (@reply Nothing {}) => {};
    (@reply $reply:ident {$($(#[$reply_doc:meta])* $field:ident: $type:ty),*}) => {
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $reply {$($(#[$reply_doc])* pub $field: $type),*}

        calls!(@field $reply {$($field: $type),*});
    };
    (@type Nothing) => {()};
    (@type $reply:ident) => {$reply};
}

calls! {
    /// The worker's last message before it closes the connection. The variable bytes are a sentence.
    Close = 0x0000 {} -> Nothing {}
    /// How many devices the client was granted.
    DeviceCount = 0x0001 {} -> Count { devices: i32 }
    /// The first message. The variable bytes are the program's name, for the worker's log. The reply's variable bytes are
    /// the worker's version.
    Hello = 0x0002 {
        /// Zeroes where the worker asks for no token.
        token: [u8; 32],
        /// The client's process, for the worker's log.
        pid: u32,
        /// The most bytes that the client wants to allocate on each device; 0 is no bound.
        memory: u64
    } -> Welcome {
        /// How many bytes of chunks may be under way before a [`Credit`] gives some back.
        window: u64,
        /// `hipDriverGetVersion` and `hipRuntimeGetVersion` of the worker's library.
        driver: i32,
        runtime: i32,
        devices: i32
    }
    /// Answered at once, whatever the GPU does: a heartbeat.
    Ping = 0x0003 {} -> Nothing {}
    /// From the worker: bytes of chunks that it has taken.
    Credit = 0x0004 { bytes: u64 } -> Nothing {}
    /// From the worker: what kernels printed, as variable bytes.
    Output = 0x0005 {} -> Nothing {}
    /// The reply's variable bytes are the struct as the worker's library fills it.
    DeviceProperties = 0x0006 { device: i32 } -> Properties {
        /// 0: `hipDeviceProp_t` of ROCm 5 (792 bytes); 1: `hipDeviceProp_tR0600`.
        layout: u32
    }
    /// `hipDeviceGetAttribute`, by the numbers of ROCm 6.
    DeviceAttribute = 0x0007 { device: i32, attribute: i32 } -> Attribute { value: i32 }
    /// `hipMemGetInfo` of the lane's device, in bytes.
    MemoryInfo = 0x0008 {} -> Memory { free: u64, total: u64 }
    /// The lane's device from now on. One-way.
    SetDevice = 0x0009 { device: i32 } -> Nothing {}
    /// Waits for all of the lane's device.
    DeviceSync = 0x000a {} -> Nothing {}
    /// Frees all that the client has on the lane's device.
    DeviceReset = 0x000b {} -> Nothing {}
    /// The lane's thread has ended: whatever thread has its number next is another one. One-way.
    LaneEnd = 0x000c {} -> Nothing {}
    /// Allocates on the lane's device.
    Malloc = 0x0010 { bytes: u64 } -> Allocation { pointer: u64 }
    /// One-way.
    Free = 0x0011 { pointer: u64 } -> Nothing {}
    /// Fills `height` rows of `width` elements of `element` bytes (1, 2 or 4). One-way where the program does not wait.
    Memset = 0x0012 { pointer: u64, pitch: u64, value: u32, element: u32, width: u64, height: u64, stream: u64 } -> Nothing {}
    /// Writes rows to a device. [`crate::envelope::CHUNK`]s with this request's id follow, with the rows one after the other
    /// without gaps; a chunk may end within a row. The reply comes when the copy has ended.
    HostToDevice = 0x0020 { pointer: u64, pitch: u64, width: u64, height: u64, stream: u64 } -> Nothing {}
    /// Reads rows from a device. Chunks with this request's id follow, as for [`HostToDevice`], before the reply. With
    /// [`crate::envelope::NO_REPLY`] the chunks come before the reply of the first wait that covers the copy.
    DeviceToHost = 0x0021 { pointer: u64, pitch: u64, width: u64, height: u64, stream: u64 } -> Nothing {}
    /// Copies rows within and between devices. One-way where the program does not wait.
    DeviceToDevice = 0x0022 { to: u64, to_pitch: u64, from: u64, from_pitch: u64, width: u64, height: u64, stream: u64 } -> Nothing {}
    /// The variable bytes are the explicit part of the kernel's arguments, laid out as its metadata says. One-way.
    Launch = 0x0030 { function: u64, grid: [u32; 3], block: [u32; 3], shared: u32, stream: u64 } -> Nothing {}
    /// Loads a code object that the worker keeps, on the lane's device. A module of 0 asks for [`ModuleImage`].
    ModuleLoad = 0x0031 { sha256: [u8; 32], bytes: u64 } -> Loaded { module: u64 }
    /// A code object, which chunks with this request's id bring.
    ModuleImage = 0x0032 { sha256: [u8; 32], bytes: u64 } -> LoadedImage { module: u64 }
    /// One-way.
    ModuleUnload = 0x0033 { module: u64 } -> Nothing {}
    /// The variable bytes are the kernel's name.
    ModuleFunction = 0x0034 { module: u64 } -> Function { function: u64 }
    /// The variable bytes are the variable's name.
    ModuleGlobal = 0x0035 { module: u64 } -> Global { pointer: u64, bytes: u64 }
    /// `hipFuncGetAttribute` (HIP_FUNC_ATTRIBUTE_*).
    FunctionAttribute = 0x0036 { function: u64, attribute: i32 } -> FunctionValue { value: i32 }
    /// `hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`.
    Occupancy = 0x0037 { function: u64, block: i32, shared: u64, flags: u32 } -> Blocks { blocks: i32 }
    /// `hipModuleOccupancyMaxPotentialBlockSizeWithFlags`.
    OccupancyBlock = 0x0038 { function: u64, shared: u64, limit: i32, flags: u32 } -> BlockSize { grid: i32, block: i32 }
    /// Waits for a stream.
    StreamSync = 0x0040 { stream: u64 } -> Nothing {}
    StreamCreate = 0x0041 { flags: u32, priority: i32 } -> Stream { stream: u64 }
    /// One-way.
    StreamDestroy = 0x0042 { stream: u64 } -> Nothing {}
    /// The reply's status is `hipErrorNotReady` while the stream works.
    StreamQuery = 0x0043 { stream: u64 } -> Nothing {}
    /// One-way.
    StreamWaitEvent = 0x0044 { stream: u64, event: u64, flags: u32 } -> Nothing {}
    StreamPriorities = 0x0045 {} -> Priorities { least: i32, greatest: i32 }
    EventCreate = 0x0050 { flags: u32 } -> Event { event: u64 }
    /// One-way.
    EventDestroy = 0x0051 { event: u64 } -> Nothing {}
    /// One-way.
    EventRecord = 0x0052 { event: u64, stream: u64 } -> Nothing {}
    /// Waits for an event.
    EventSync = 0x0053 { event: u64 } -> Nothing {}
    /// The reply's status is `hipErrorNotReady` until the event has come.
    EventQuery = 0x0054 { event: u64 } -> Nothing {}
    /// The time between two events.
    EventElapsed = 0x0055 { start: u64, stop: u64 } -> Elapsed { milliseconds: f32 }
}
