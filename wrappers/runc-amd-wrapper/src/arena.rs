//! Memory for a process that lives for a tenth of a millisecond.
//!
//! The C library's allocator asks the kernel for each larger piece and gives it back again, and every such
//! call, and the first touch of every page that it gives, costs more than all of the parsing. Here memory
//! is taken in order from a part of the program's own zeroed data, of which the kernel provides only the
//! pages that are touched, and nothing is given back but the last piece. What does not fit (bundles of
//! megabytes) goes to the system's allocator.
#![allow(unsafe_code, reason = "a global allocator is unsafe by its interface")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

const SIZE: usize = 512 * 1024;

#[repr(align(64))]
struct Memory(UnsafeCell<[u8; SIZE]>);

/// The allocator.
#[repr(C)]
pub(crate) struct Arena {
    /// How much of the memory is given away; in front of it, so that it is on the page of the first pieces.
    used: AtomicUsize,
    memory: Memory,
}

// SAFETY: pieces are handed out by an atomic exchange of `used`, so that no two threads get the same one.
unsafe impl Sync for Arena {}

impl Arena {
    pub(crate) const fn new() -> Self {
        Self { used: AtomicUsize::new(0), memory: Memory(UnsafeCell::new([0; SIZE])) }
    }

    /// To be called before anything is allocated. A page that is written first is given by the kernel at
    /// once; one that is read first is given twice.
    #[cfg_attr(not(early_entry), allow(dead_code, reason = "the program begins in src/early.rs"))]
    pub(crate) fn begin(&self) {
        self.used.store(0, Ordering::Relaxed);
    }

    fn base(&self) -> *mut u8 {
        self.memory.0.get().cast()
    }

    /// Where a piece begins, if it is one of the arena's.
    fn offset(&self, piece: *mut u8) -> Option<usize> {
        piece.addr().checked_sub(self.base().addr()).filter(|offset| *offset < SIZE)
    }

    /// Makes the last piece, from `start` to `end`, end at `new_end`; false if it is not the last one any
    /// more, or the end is too far.
    fn move_end(&self, end: usize, new_end: usize) -> bool {
        new_end <= SIZE
            && self.used.compare_exchange(end, new_end, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

// Never inlined: the program would have hundreds of copies, each on a page of its own.
// SAFETY: a piece is aligned, within the memory, and given away once; see `Sync`.
unsafe impl GlobalAlloc for Arena {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = self.used.load(Ordering::Relaxed);
        // The memory itself is aligned to 64 only.
        if layout.align() <= 64
            && let Some(start) = used.checked_next_multiple_of(layout.align())
            && let Some(end) = start.checked_add(layout.size())
            && self.move_end(used, end)
        {
            // SAFETY: `start` is at most SIZE.
            return unsafe { self.base().add(start) };
        }
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        match self.offset(piece) {
            // Only the last piece can be given back; of any other the memory stays unused.
            Some(start) => drop(self.move_end(start + layout.size(), start)),
            // SAFETY: it came from the system.
            None => unsafe { System.dealloc(piece, layout) },
        }
    }

    #[inline(never)]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match self.offset(piece) {
            Some(start) if self.move_end(start + layout.size(), start.saturating_add(size)) => piece,
            // One that is not the last keeps the room that it does not need.
            Some(_) if size <= layout.size() => piece,
            Some(_) => {
                // SAFETY: the caller guarantees a size that is legal for this alignment.
                let new = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
                if !new.is_null() {
                    // SAFETY: both pieces have at least that many bytes, and the new one is a new one.
                    unsafe { std::ptr::copy_nonoverlapping(piece, new, layout.size().min(size)) };
                }
                new
            }
            // SAFETY: it came from the system.
            None => unsafe { System.realloc(piece, layout, size) },
        }
    }
}
