//! `hipDeviceAttribute_t`: each release numbers them alike. 6.4.3 only dropped the five that are no whole numbers.

/// Whether the client answers 0 whatever the GPU can do, since the calls behind it do not go over the network.
pub fn is_not_remote(attribute: i32) -> bool {
    match attribute {
        // CanMapHostMemory, CanUseHostPointerForRegisteredMem: a GPU does not reach the program's memory.
        3 | 4 => true,
        // ConcurrentManagedAccess, DirectManagedMemAccessFromHost, ManagedMemory, PageableMemoryAccess with its page tables,
        // HostNativeAtomicSupported, IsLargeBar, FineGrainSupport: nor does the program reach the GPU's.
        9 | 13 | 15 | 24 | 65 | 66 | 10011 | 10016 => true,
        // CooperativeLaunch and what tells its kinds apart.
        10 | 11 | 10007..=10010 => true,
        // Surfaces and textures; ImageSupport.
        32..=54 | 10014 => true,
        // MemoryPoolsSupported, VirtualMemoryManagementSupported, MemoryPoolSupportedHandleTypes.
        88 | 89 | 91 => true,
        // HdpMemFlushCntl, HdpRegFlushCntl: addresses in the worker. CanUseStreamWaitValue.
        10005 | 10006 | 10013 => true,
        _ => false,
    }
}
