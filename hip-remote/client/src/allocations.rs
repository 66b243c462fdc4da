//! The device memory that the program has: which device a pointer belongs to, and how far it reaches.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::error::{HipError, Outcome};
use crate::reservation::{self, Refused};

const PAGE: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `hipFree` ends it.
    Allocated,
    /// A module's variable, which ends with the module of this handle.
    Variable { module: u64 },
}

#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    pub start: u64,
    pub bytes: u64,
    pub device: i32,
    pub kind: Kind,
}

#[derive(Default)]
pub struct Allocations {
    by_start: BTreeMap<u64, Allocation>,
}

impl Allocations {
    /// Takes an allocation in, and keeps its pages free of the program's own memory.
    ///
    /// # Errors
    /// The program has memory of its own at these addresses, or the process has no address space left.
    pub fn add(&mut self, allocation: Allocation) -> Result<(), Refused> {
        let pages = self.pages(&allocation);
        reservation::reserve(&pages)?;
        self.by_start.insert(allocation.start, allocation);
        Ok(())
    }

    /// Takes a module's variable in. Its pages are the code object's, which the worker's runtime placed: nothing can be reserved.
    pub fn add_variable(&mut self, allocation: Allocation) {
        self.by_start.insert(allocation.start, allocation);
    }

    /// Takes out what `hipMalloc` returned as `start`.
    pub fn remove(&mut self, start: u64) -> Option<Allocation> {
        if self.by_start.get(&start)?.kind != Kind::Allocated {
            return None;
        }
        let allocation = self.by_start.remove(&start)?;
        reservation::release(&self.pages(&allocation));
        Some(allocation)
    }

    pub fn remove_module(&mut self, module: u64) {
        self.by_start.retain(|_, allocation| allocation.kind != (Kind::Variable { module }));
    }

    pub fn remove_device(&mut self, device: i32) {
        let starts: Vec<u64> = self
            .by_start
            .values()
            .filter(|allocation| allocation.device == device)
            .map(|a| a.start)
            .collect();
        for start in starts {
            if self.remove(start).is_none() {
                self.by_start.remove(&start);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// Whose memory a pointer is in.
    pub fn find(&self, pointer: u64) -> Option<Allocation> {
        let (_, allocation) = self.by_start.range(..=pointer).next_back()?;
        // A pointer to an allocation's end belongs to nobody, as for C's arrays.
        (pointer - allocation.start < allocation.bytes.max(1)).then_some(*allocation)
    }

    /// The allocation that has all rows, where the pointer is a device's at all.
    ///
    /// # Errors
    /// The rows reach beyond the allocation's end.
    pub fn rows(&self, pointer: u64, pitch: u64, width: u64, height: u64) -> Outcome<Option<Allocation>> {
        let Some(allocation) = self.find(pointer) else { return Ok(None) };
        let end = height
            .checked_sub(1)
            .and_then(|rows| rows.checked_mul(pitch))
            .and_then(|rows| rows.checked_add(width))
            .and_then(|bytes| bytes.checked_add(pointer - allocation.start));
        match end {
            Some(end) if end <= allocation.bytes => Ok(Some(allocation)),
            _ => Err(HipError::INVALID_VALUE),
        }
    }

    /// The pages of an allocation that no neighbour's reservation has.
    fn pages(&self, of: &Allocation) -> Range<u64> {
        let mut first = of.start / PAGE * PAGE;
        let mut end = of.start.saturating_add(of.bytes.max(1)).div_ceil(PAGE).saturating_mul(PAGE);
        let allocated = |neighbour: &&Allocation| neighbour.kind == Kind::Allocated;
        let before = self.by_start.range(..of.start).map(|(_, before)| before).rfind(allocated);
        if before.is_some_and(|before| before.start + before.bytes > first) {
            first += PAGE;
        }
        let after = self.by_start.range(of.start + 1..).map(|(_, after)| after).find(allocated);
        if after.is_some_and(|after| after.start < end) {
            end -= PAGE;
        }
        first..end.max(first)
    }
}

impl Drop for Allocations {
    fn drop(&mut self) {
        let starts: Vec<u64> = self.by_start.keys().copied().collect();
        for start in starts {
            self.remove(start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x2345_0000_0000;

    fn allocation(start: u64, bytes: u64) -> Allocation {
        Allocation { start, bytes, device: 0, kind: Kind::Allocated }
    }

    #[test]
    fn a_pointer_inside_is_found_and_its_end_is_not() {
        let mut all = Allocations::default();
        all.add(allocation(BASE, 100)).unwrap();
        assert_eq!(all.find(BASE + 99).map(|a| a.start), Some(BASE));
        assert!(all.find(BASE + 100).is_none());
        assert!(all.find(BASE - 1).is_none());
        assert!(all.rows(BASE + 10, 20, 10, 5).unwrap().is_some());
        assert_eq!(all.rows(BASE + 11, 20, 10, 5).unwrap_err(), HipError::INVALID_VALUE);
        assert_eq!(all.rows(BASE, u64::MAX, 1, u64::MAX).unwrap_err(), HipError::INVALID_VALUE);
    }

    #[test]
    fn neighbours_share_a_page_and_the_last_one_gives_it_back() {
        let base = BASE + 0x1_0000_0000;
        let page = base..base + PAGE;
        let mut all = Allocations::default();
        all.add(allocation(base, 256)).unwrap();
        all.add(allocation(base + 256, 256)).unwrap();
        all.add(allocation(base + 512, 8192)).unwrap();
        all.remove(base + 256).unwrap();
        assert_eq!(reservation::reserve(&page), Err(Refused::Taken));
        all.remove(base).unwrap();
        assert_eq!(reservation::reserve(&page), Err(Refused::Taken));
        all.remove(base + 512).unwrap();
        assert_eq!(reservation::reserve(&(base..base + 4 * PAGE)), Ok(()));
        reservation::release(&(base..base + 4 * PAGE));
    }

    #[test]
    fn memory_of_the_program_is_a_collision() {
        let mut all = Allocations::default();
        let own = Box::new([0u8; 64]);
        assert_eq!(all.add(allocation(own.as_ptr() as u64 & !255, 256)), Err(Refused::Taken));
        assert!(all.is_empty());
    }
}
