//! The handles that a program has of streams, events, modules and kernels, so that a wrong one is an error.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use crate::code_object::{Kernel, Module};
use crate::stream::{Stream, Ticket};

/// The least handle: those below mean something of their own to HIP.
const FIRST: u64 = 0x1000;

pub struct Event {
    pub flags: u32,
    pub record: Mutex<Option<Record>>,
}

#[derive(Clone)]
pub struct Record {
    pub ticket: Ticket,
    /// When the stream came to it.
    pub nanoseconds: Arc<AtomicU64>,
}

impl Event {
    pub fn record(&self) -> Option<Record> {
        self.record.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// Things of a kind by their handles.
pub struct Table<T>(Mutex<HashMap<u64, Arc<T>>>);

impl<T> Table<T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<T>>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn add(&self, thing: Arc<T>) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(FIRST);
        let handle = NEXT.fetch_add(16, Ordering::Relaxed);
        self.lock().insert(handle, thing);
        handle
    }

    pub fn get(&self, handle: u64) -> Option<Arc<T>> {
        self.lock().get(&handle).cloned()
    }

    pub fn remove(&self, handle: u64) -> Option<Arc<T>> {
        self.lock().remove(&handle)
    }

    pub fn retain(&self, keep: impl Fn(&T) -> bool) {
        self.lock().retain(|_, thing| keep(thing));
    }

    pub fn count(&self) -> usize {
        self.lock().len()
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

pub static STREAMS: LazyLock<Table<Stream>> = LazyLock::new(Table::default);
pub static EVENTS: LazyLock<Table<Event>> = LazyLock::new(Table::default);
pub static MODULES: LazyLock<Table<Module>> = LazyLock::new(Table::default);
pub static KERNELS: LazyLock<Table<Kernel>> = LazyLock::new(Table::default);
