//! Host memory that the GPU reaches by itself.
#![allow(unsafe_code, reason = "the memory is the HIP library's")]

use std::ops::Range;
use std::sync::Arc;

use super::{Hip, Status};

/// Pinned host memory; it is freed when it is dropped.
#[derive(Debug)]
pub struct Pinned {
    hip: Arc<Hip>,
    at: u64,
    length: usize,
}

impl Pinned {
    /// # Errors
    /// The library has no more pinned memory.
    pub fn new(hip: &Arc<Hip>, length: usize) -> Result<Self, Status> {
        Ok(Self { at: hip.host_malloc(length)?, hip: Arc::clone(hip), length })
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// The address of the byte at `offset`, for copies by the GPU.
    pub fn address(&self, offset: usize) -> u64 {
        self.at + offset as u64
    }

    /// Bytes that no copy of the GPU writes at present.
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        // SAFETY: the library gave `length` bytes, which live as long as this value.
        unsafe { std::slice::from_raw_parts(self.at as *const u8, self.length) }
            .get(range)
            .unwrap_or_default()
    }

    /// Bytes that no copy of the GPU uses at present.
    pub fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.at as *mut u8, self.length) }
            .get_mut(range)
            .unwrap_or_default()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.hip.host_free(self.at);
    }
}
