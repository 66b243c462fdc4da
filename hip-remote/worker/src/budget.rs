//! How much memory the client has on each device. No lock guards it: the watch reads it while the reader is in the library.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::hip::{OUT_OF_MEMORY, Status};

#[derive(Debug)]
pub struct Budget {
    /// The most bytes that the client may have on each device; `u64::MAX`: as many as there are.
    pub limit: u64,
    allocated: Vec<AtomicU64>,
}

impl Budget {
    pub fn new(devices: i32, limit: u64) -> Self {
        Self { limit, allocated: (0..devices).map(|_| AtomicU64::new(0)).collect() }
    }

    fn of(&self, device: i32) -> Option<&AtomicU64> {
        self.allocated.get(usize::try_from(device).ok()?)
    }

    /// The bytes that the client has on a device, or is about to have.
    pub fn allocated(&self, device: i32) -> u64 {
        self.of(device).map_or(0, |allocated| allocated.load(Ordering::Relaxed))
    }

    /// Counts bytes before they are allocated.
    ///
    /// # Errors
    /// The client would have more than it may.
    pub fn take(&self, device: i32, bytes: u64) -> Result<(), Status> {
        // Without such a device the library's own error is the one that programs know.
        let Some(allocated) = self.of(device) else { return Ok(()) };
        let within = |allocated: u64| allocated.checked_add(bytes).filter(|sum| *sum <= self.limit);
        let taken = allocated.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within);
        taken.map(drop).map_err(|_| OUT_OF_MEMORY)
    }

    /// Gives bytes back that the library has freed, or did not allocate.
    pub fn give(&self, device: i32, bytes: u64) {
        if let Some(allocated) = self.of(device) {
            allocated.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_at_most_its_limit_on_each_device() {
        let budget = Budget::new(2, 100);
        budget.take(0, 60).unwrap();
        assert_eq!(budget.take(0, 41), Err(OUT_OF_MEMORY));
        assert_eq!(budget.take(0, u64::MAX), Err(OUT_OF_MEMORY));
        budget.take(0, 40).unwrap();
        budget.take(1, 100).unwrap();
        budget.give(0, 60);
        assert_eq!((budget.allocated(0), budget.allocated(1)), (40, 100));
    }
}
