//! The memory of the devices, and that of the host which the devices reach.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use crate::fault::Fault;
use crate::settings::SETTINGS;
use crate::status::{
    HOST_MEMORY_ALREADY_REGISTERED, HOST_MEMORY_NOT_REGISTERED, INVALID_VALUE, OUT_OF_MEMORY, Status,
};

pub const PAGE: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Device,
    /// A module's code and variables.
    Code,
    Pinned,
    Registered,
}

#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    pub start: u64,
    pub bytes: u64,
    pub kind: Kind,
    pub device: usize,
    pub flags: u32,
}

impl Allocation {
    pub fn is_on_device(&self) -> bool {
        matches!(self.kind, Kind::Device | Kind::Code)
    }
}

/// The ranges that kernels may touch, in order.
#[derive(Debug, Default)]
pub struct Map(Vec<(u64, u64)>);

/// What a launch may touch: the map, and its arguments.
pub struct View<'a> {
    map: &'a Map,
    own: [(u64, u64); 2],
    last: (u64, u64),
}

impl<'a> View<'a> {
    pub fn new(map: &'a Map, own: [(u64, u64); 2]) -> Self {
        Self { map, own, last: (0, 0) }
    }

    /// A pointer to bytes that a lane may touch.
    pub fn reach(&mut self, address: u64, bytes: usize) -> Result<*mut u8, Fault> {
        let end = address.wrapping_add(bytes as u64);
        let inside = |range: (u64, u64)| range.0 <= address && address < end && end <= range.1;
        if !inside(self.last) {
            let at = self.map.0.partition_point(|range| range.0 <= address);
            let found = at.checked_sub(1).map(|at| self.map.0[at]).filter(|range| inside(*range));
            let found = found.or_else(|| self.own.into_iter().find(|range| inside(*range)));
            self.last = found.ok_or(Fault::Memory { address, bytes })?;
        }
        Ok(address as *mut u8)
    }
}

#[derive(Default)]
pub struct Memory {
    allocations: BTreeMap<u64, Allocation>,
    /// Where the next allocation of a device is tried.
    next: u64,
    map: Option<Arc<Map>>,
}

static MEMORY: LazyLock<Mutex<Memory>> = LazyLock::new(Mutex::default);

pub fn memory() -> MutexGuard<'static, Memory> {
    MEMORY.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

unsafe extern "C" {
    fn mmap(
        address: *mut c_void,
        length: usize,
        protection: i32,
        flags: i32,
        file: i32,
        offset: i64,
    ) -> *mut c_void;
    fn munmap(address: *mut c_void, length: usize) -> i32;
}

const READ_WRITE: i32 = 1 | 2;
const PRIVATE_ANONYMOUS: i32 = 2 | 0x20;
const NO_RESERVE: i32 = 0x4000;
const FIXED_NO_REPLACE: i32 = 0x10_0000;

fn map_at(address: u64, bytes: u64, flags: i32) -> Option<u64> {
    let flags = PRIVATE_ANONYMOUS | NO_RESERVE | flags;
    // Nothing is replaced: the address is a hint, or a demand that fails where something is.
    let mapped = unsafe { mmap(address as *mut c_void, bytes as usize, READ_WRITE, flags, -1, 0) };
    (mapped as isize != -1).then_some(mapped as u64)
}

fn unmap(address: u64, bytes: u64) {
    // The caller has taken the range out of the table, and nothing else mapped it.
    unsafe { munmap(address as *mut c_void, bytes as usize) };
}

pub fn whole_pages(bytes: u64) -> Option<u64> {
    Some(bytes.max(1).checked_add(PAGE - 1)? & !(PAGE - 1))
}

impl Memory {
    pub fn used(&self, device: usize) -> u64 {
        let on = |allocation: &&Allocation| allocation.is_on_device() && allocation.device == device;
        self.allocations.values().filter(on).filter_map(|allocation| whole_pages(allocation.bytes)).sum()
    }

    pub fn allocate(&mut self, device: usize, bytes: u64, kind: Kind) -> Result<u64, Status> {
        let length = whole_pages(bytes).ok_or(OUT_OF_MEMORY)?;
        if kind == Kind::Device && SETTINGS.memory.saturating_sub(self.used(device)) < length {
            return Err(OUT_OF_MEMORY);
        }
        self.next = self.next.max(SETTINGS.base);
        for _ in 0..1024 {
            let start = self.next;
            self.next += length;
            if map_at(start, length, FIXED_NO_REPLACE) == Some(start) {
                self.insert(Allocation { start, bytes, kind, device, flags: 0 });
                return Ok(start);
            }
        }
        Err(OUT_OF_MEMORY)
    }

    pub fn allocate_host(&mut self, device: usize, bytes: u64, flags: u32) -> Result<u64, Status> {
        let length = whole_pages(bytes).ok_or(OUT_OF_MEMORY)?;
        let start = map_at(0, length, 0).ok_or(OUT_OF_MEMORY)?;
        self.insert(Allocation { start, bytes, kind: Kind::Pinned, device, flags });
        Ok(start)
    }

    pub fn register(&mut self, device: usize, start: u64, bytes: u64, flags: u32) -> Result<(), Status> {
        if bytes == 0 || start == 0 {
            return Err(INVALID_VALUE);
        }
        if self.find(start).is_some() {
            return Err(HOST_MEMORY_ALREADY_REGISTERED);
        }
        self.insert(Allocation { start, bytes, kind: Kind::Registered, device, flags });
        Ok(())
    }

    pub fn unregister(&mut self, start: u64) -> Result<(), Status> {
        match self.allocations.get(&start) {
            Some(Allocation { kind: Kind::Registered, .. }) => {
                self.allocations.remove(&start);
                self.map = None;
                Ok(())
            }
            _ => Err(HOST_MEMORY_NOT_REGISTERED),
        }
    }

    fn insert(&mut self, allocation: Allocation) {
        self.allocations.insert(allocation.start, allocation);
        self.map = None;
    }

    pub fn free(&mut self, start: u64, kind: Kind) -> Result<(), Status> {
        match self.allocations.get(&start) {
            Some(allocation) if allocation.kind == kind => {
                let bytes = whole_pages(allocation.bytes).unwrap_or(0);
                self.allocations.remove(&start);
                self.map = None;
                unmap(start, bytes);
                Ok(())
            }
            _ => Err(INVALID_VALUE),
        }
    }

    /// Frees what a device has, but not its modules.
    pub fn reset(&mut self, device: usize) {
        let starts: Vec<u64> = self
            .allocations
            .values()
            .filter(|allocation| allocation.kind == Kind::Device && allocation.device == device)
            .map(|allocation| allocation.start)
            .collect();
        for start in starts {
            let _ = self.free(start, Kind::Device);
        }
    }

    /// The allocation that an address is in.
    pub fn find(&self, address: u64) -> Option<&Allocation> {
        let (_, allocation) = self.allocations.range(..=address).next_back()?;
        (address - allocation.start < allocation.bytes.max(1)).then_some(allocation)
    }

    /// The allocation that all of a range is in, if any of it is in one.
    pub fn holding(&self, address: u64, bytes: u64) -> Result<Option<&Allocation>, Status> {
        let Some(allocation) = self.find(address) else { return Ok(None) };
        if address - allocation.start + bytes > allocation.bytes {
            Err(INVALID_VALUE)
        } else {
            Ok(Some(allocation))
        }
    }

    pub fn map(&mut self) -> Arc<Map> {
        let allocations = &self.allocations;
        let build = || {
            let range = |a: &Allocation| match a.kind {
                Kind::Registered => (a.start, a.start + a.bytes),
                // A page is what a GPU protects.
                _ => (a.start, a.start + whole_pages(a.bytes).unwrap_or(a.bytes)),
            };
            Arc::new(Map(allocations.values().map(range).collect()))
        };
        self.map.get_or_insert_with(build).clone()
    }

    pub fn count(&self, kind: Kind) -> usize {
        self.allocations.values().filter(|allocation| allocation.kind == kind).count()
    }
}
