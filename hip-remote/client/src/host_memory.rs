//! Memory of the program that HIP calls pinned.
//!
//! No GPU reads it here, so that nothing is pinned: the worker has pinned memory of its own. The client only knows the ranges, to
//! tell which copies may come later than their call.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::{Mutex, MutexGuard};

use crate::connection::lock;
use crate::error::{HipError, Outcome};

#[derive(Clone, Copy, Debug)]
pub struct HostMemory {
    pub start: usize,
    pub bytes: usize,
    pub flags: u32,
    /// By `hipHostMalloc`; else the program's own, by `hipHostRegister`.
    pub allocated: bool,
}

/// By their beginning.
pub type Ranges = BTreeMap<usize, HostMemory>;

static RANGES: Mutex<Ranges> = Mutex::new(BTreeMap::new());

/// Keeps all other threads out, across a fork.
pub fn hold() -> MutexGuard<'static, Ranges> {
    lock(&RANGES)
}

/// The memory that an address is in.
pub fn find(address: usize) -> Option<HostMemory> {
    let ranges = lock(&RANGES);
    let (_, found) = ranges.range(..=address).next_back()?;
    (address - found.start < found.bytes).then_some(*found)
}

/// Whether all these bytes are in one range.
pub fn has(address: usize, bytes: usize) -> bool {
    find(address).is_some_and(|found| bytes <= found.bytes - (address - found.start))
}

/// # Errors
/// The process has no such memory left.
pub fn allocate(bytes: usize, flags: u32) -> Outcome<usize> {
    let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: the kernel chooses a free address.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(HipError::OUT_OF_MEMORY);
    }
    let start = start as usize;
    lock(&RANGES).insert(start, HostMemory { start, bytes, flags, allocated: true });
    Ok(start)
}

/// # Errors
/// [`allocate`] did not return this address.
pub fn free(start: usize) -> Outcome {
    let mut ranges = lock(&RANGES);
    let found = ranges.get(&start).filter(|found| found.allocated).copied().ok_or(HipError::INVALID_VALUE)?;
    ranges.remove(&start);
    // SAFETY: allocate() mapped the range, and the program gives it back.
    unsafe { libc::munmap(start as *mut libc::c_void, found.bytes) };
    Ok(())
}

/// # Errors
/// The range is empty, or a part of it is known already.
pub fn register(start: usize, bytes: usize, flags: u32) -> Outcome {
    let end = start.checked_add(bytes).filter(|end| *end > start).ok_or(HipError::INVALID_VALUE)?;
    let mut ranges = lock(&RANGES);
    let before = ranges.range(..end).next_back();
    if before.is_some_and(|(_, before)| before.start + before.bytes > start) {
        return Err(HipError::HOST_MEMORY_ALREADY_REGISTERED);
    }
    ranges.insert(start, HostMemory { start, bytes, flags, allocated: false });
    Ok(())
}

/// # Errors
/// [`register`] does not know this address.
pub fn unregister(start: usize) -> Outcome {
    let mut ranges = lock(&RANGES);
    match ranges.get(&start) {
        Some(found) if !found.allocated => {
            ranges.remove(&start);
            Ok(())
        }
        _ => Err(HipError::HOST_MEMORY_NOT_REGISTERED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_registered_once_and_by_its_beginning() {
        let memory = [0u8; 100];
        let start = memory.as_ptr() as usize;
        register(start, 100, 0).unwrap();
        assert_eq!(register(start + 50, 100, 0), Err(HipError::HOST_MEMORY_ALREADY_REGISTERED));
        assert!(has(start + 50, 50) && !has(start + 50, 51));
        assert_eq!(unregister(start + 1), Err(HipError::HOST_MEMORY_NOT_REGISTERED));
        assert_eq!(free(start), Err(HipError::INVALID_VALUE));
        unregister(start).unwrap();
        assert!(find(start).is_none());
    }
}
