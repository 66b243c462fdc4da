//! What the program has at one worker: a connection, and what it made there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use hip_protocol::calls::{DeviceAttribute, DeviceProperties, Welcome};

use crate::allocations::Allocations;
use crate::connection::{Connection, Desk, lock};
use crate::error::{HipError, Outcome};
use crate::loaded::Modules;
use crate::properties::Properties;

pub struct Session {
    pub connection: Arc<Connection>,
    pub welcome: Welcome,
    tables: Mutex<Tables>,
    /// Calls that failed with the connection have taken the program's last state out of the tables.
    keeps_state: AtomicBool,
    /// Held while a code object is loaded, so that two threads do not load it twice.
    pub loading: Mutex<()>,
    properties: Mutex<HashMap<i32, Arc<Properties>>>,
    /// By device and number.
    attributes: Mutex<HashMap<(i32, i32), i32>>,
}

/// What the worker made for the program. A thread holds the tables while it looks, never while it waits.
#[derive(Default)]
pub struct Tables {
    pub allocations: Allocations,
    pub streams: HashMap<u64, Stream>,
    pub events: HashMap<u64, Event>,
    pub modules: Modules,
}

#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub device: i32,
    pub flags: u32,
    pub priority: i32,
}

#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub device: i32,
}

impl Session {
    pub fn new(connection: Arc<Connection>, welcome: Welcome) -> Self {
        Self {
            connection,
            welcome,
            tables: Mutex::default(),
            keeps_state: AtomicBool::new(false),
            loading: Mutex::default(),
            properties: Mutex::default(),
            attributes: Mutex::default(),
        }
    }

    pub fn tables(&self) -> std::sync::MutexGuard<'_, Tables> {
        lock(&self.tables)
    }

    /// Whether the program holds a pointer or a handle of this worker, or waits for its kernels. Then no other worker can stand
    /// in for it.
    pub fn has_state(&self) -> bool {
        if self.keeps_state.load(Ordering::Relaxed) || self.connection.has_launches_under_way() {
            return true;
        }
        let tables = self.tables();
        !tables.allocations.is_empty()
            || !tables.streams.is_empty()
            || !tables.events.is_empty()
            || tables.modules.has_state()
    }

    /// Has state for good.
    pub fn keep_state(&self) {
        self.keeps_state.store(true, Ordering::Relaxed);
    }

    /// # Errors
    /// The number is no device of the worker's.
    pub fn device(&self, device: i32) -> Outcome<i32> {
        if (0..self.welcome.devices).contains(&device) { Ok(device) } else { Err(HipError::INVALID_DEVICE) }
    }

    /// A device's properties, which do not change.
    ///
    /// # Errors
    /// There is no such device, or the connection is lost.
    pub fn properties(&self, desk: &Desk, device: i32) -> Outcome<Arc<Properties>> {
        let device = self.device(device)?;
        if let Some(known) = lock(&self.properties).get(&device) {
            return Ok(Arc::clone(known));
        }
        let (reply, bytes) = self.connection.call(desk, &DeviceProperties { device }, &[])?;
        let properties = Arc::new(Properties::new(reply.layout, bytes)?);
        lock(&self.properties).insert(device, Arc::clone(&properties));
        Ok(properties)
    }

    /// An attribute of a device, which does not change either.
    ///
    /// # Errors
    /// There is no such device or attribute, or the connection is lost.
    pub fn attribute(&self, desk: &Desk, device: i32, attribute: i32) -> Outcome<i32> {
        let device = self.device(device)?;
        if let Some(known) = lock(&self.attributes).get(&(device, attribute)) {
            return Ok(*known);
        }
        let (reply, _) = self.connection.call(desk, &DeviceAttribute { device, attribute }, &[])?;
        lock(&self.attributes).insert((device, attribute), reply.value);
        Ok(reply.value)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.connection.close();
    }
}
