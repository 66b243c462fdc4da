//! The wrapper's memory: dlmalloc over pages that the kernel fills in as it maps them.
//!
//! A create for 64 partitions touches some sixty pages. One by one each costs a page fault, 1.4 µs; filled in by mmap(2) it
//! costs a quarter. musl's own allocator maps and unmaps a page for most requests, and dlmalloc's own global one takes a
//! lock for each.
#![allow(unsafe_code, reason = "an allocator hands out raw memory")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::{Allocator, Dlmalloc};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// How much is mapped at once, in bytes: all that a call for a container without GPUs needs.
const GRANULARITY: usize = 32 * 1024;

/// The kernel's pages. None is given back: the process ends in less than a millisecond.
struct Pages;

// SAFETY: `alloc` answers with a new mapping of `size` bytes that nothing unmaps, or with null.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: a mapping at an address of the kernel's choice replaces none.
        match unsafe { mmap_anonymous(std::ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, flags) }
        {
            Ok(start) => (start.cast(), size, 0),
            Err(_) => (std::ptr::null_mut(), 0, 0),
        }
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        std::ptr::null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        4096
    }
}

/// The global allocator. Threads that ask for folders allocate too.
pub(crate) struct Memory(Mutex<Dlmalloc<Pages>>);

impl Memory {
    pub(crate) const fn new() -> Self {
        let mut memory = Dlmalloc::new_with_allocator(Pages);
        assert!(memory.set_granularity(GRANULARITY), "a power of two");
        Self(Mutex::new(memory))
    }

    /// std's lock is a futex, which needs no memory.
    fn pieces(&self) -> MutexGuard<'_, Dlmalloc<Pages>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: dlmalloc keeps GlobalAlloc's contract, and the lock keeps calls apart.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above; the same holds for the three below.
        unsafe { self.pieces().malloc(layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { self.pieces().calloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { self.pieces().free(memory, layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { self.pieces().realloc(memory, layout.size(), layout.align(), size) }
    }
}

/// Copies memory that does not overlap, in musl's place (build.rs). musl's `rep movsq` takes some 20 ns to begin, and a
/// create for 64 partitions makes 3,000 copies, most of them of less than 16 bytes: a seventh of its time. Processors
/// begin `rep movsb` fast (Intel's FSRM, AMD's from Zen 3 on); an older one takes as long as for musl's.
///
/// # Safety
/// C's: `length` bytes at `from` can be read and as many at `to` written, and none of them is the same.
#[cfg(all(target_arch = "x86_64", target_env = "musl"))]
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    // SAFETY: by the contract; the direction flag is clear at each call (System V ABI).
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") length => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
    to
}
