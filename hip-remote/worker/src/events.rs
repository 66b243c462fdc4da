//! Events of the worker's own, which say when a copy has ended. They are used again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::hip::{EVENT_BLOCKING_SYNC, EVENT_DISABLE_TIMING, Hip, Status};
use crate::locked::locked;

#[derive(Debug)]
pub struct Events {
    hip: Arc<Hip>,
    /// An event belongs to a device.
    free: Mutex<HashMap<i32, Vec<u64>>>,
}

/// An event that has been recorded. It goes back when it is dropped.
#[derive(Debug)]
pub struct Recorded {
    events: Arc<Events>,
    device: i32,
    event: u64,
}

impl Events {
    pub fn new(hip: &Arc<Hip>) -> Arc<Self> {
        Arc::new(Self { hip: Arc::clone(hip), free: Mutex::default() })
    }

    /// Records an event behind all that the stream has to do. The thread's device is the stream's.
    ///
    /// # Errors
    /// The library refuses.
    pub fn record(self: &Arc<Self>, device: i32, stream: u64) -> Result<Recorded, Status> {
        let kept = locked(&self.free).get_mut(&device).and_then(Vec::pop);
        let event = match kept {
            Some(event) => event,
            None => self.hip.event_create(EVENT_DISABLE_TIMING | EVENT_BLOCKING_SYNC)?,
        };
        let recorded = Recorded { events: Arc::clone(self), device, event };
        self.hip.event_record(event, stream)?;
        Ok(recorded)
    }
}

impl Events {
    /// Destroys the events that nobody uses.
    pub fn clear(&self) {
        for (_, events) in locked(&self.free).drain() {
            for event in events {
                // The process ends: nobody waits for the result.
                let _ = self.hip.event_destroy(event);
            }
        }
    }
}

impl Recorded {
    /// # Errors
    /// The device has failed.
    pub fn wait(&self) -> Result<(), Status> {
        self.events.hip.event_sync(self.event)
    }

    /// # Errors
    /// The event has not come (`hipErrorNotReady`), or the device has failed.
    pub fn query(&self) -> Result<(), Status> {
        self.events.hip.event_query(self.event)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        locked(&self.events.free).entry(self.device).or_default().push(self.event);
    }
}
