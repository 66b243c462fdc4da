//! Calls about devices.

use hip_protocol::calls::*;

use crate::hip::{INVALID_DEVICE, Status};
use crate::locked::locked;
use crate::request::{Answer, Request};
use crate::serving::Serving;
use crate::session::Session;

/// So many streams are asked whether they are idle before a thread waits for them.
const FEW: usize = 8;

impl Session {
    fn memory_info(&self, device: i32) -> Result<Memory, Status> {
        let (free, total) = self.hip.memory_info()?;
        let (limit, allocated) = (self.budget.limit, self.budget.allocated(device));
        let (free, total) = (free as u64, total as u64);
        Ok(Memory { free: free.min(limit.saturating_sub(allocated)), total: total.min(limit) })
    }
}

impl Serving {
    pub fn device_count(&mut self, _: &Request, _: DeviceCount) -> Answer<Count> {
        Ok(Some(Count { devices: self.session.devices? }))
    }

    fn known(&self, device: i32) -> Result<i32, Status> {
        if (0..self.session.devices?).contains(&device) { Ok(device) } else { Err(INVALID_DEVICE) }
    }

    pub fn device_properties(&mut self, request: &Request, call: DeviceProperties) -> Answer<Properties> {
        let result = self.known(call.device).and_then(|device| self.session.hip.properties(device));
        let (result, bytes) = match result {
            Ok((bytes, layout)) => (Ok(Properties { layout: layout as u32 }), bytes),
            Err(status) => (Err(status), Vec::new()),
        };
        request.answer(result, &bytes, &mut self.out);
        Ok(None)
    }

    pub fn device_attribute(&mut self, _: &Request, call: DeviceAttribute) -> Answer<Attribute> {
        let value = self.session.hip.device_attribute(self.known(call.device)?, call.attribute)?;
        Ok(Some(Attribute { value }))
    }

    pub fn memory_info(&mut self, request: &Request, _: MemoryInfo) -> Answer<Memory> {
        let device = request.lane.device();
        if self.session.releases.is_idle(device) {
            return self.session.memory_info(device).map(Some);
        }
        // A program that has freed memory counts it as free.
        self.later(request, move |session| {
            session.releases.wait(device);
            session.memory_info(device)
        })
    }

    pub fn set_device(&mut self, request: &Request, call: SetDevice) -> Answer<()> {
        request.lane.set_device(self.known(call.device)?);
        Ok(Some(()))
    }

    pub fn device_sync(&mut self, request: &Request, _: DeviceSync) -> Answer<()> {
        let device = request.lane.device();
        let streams = locked(&self.session.tables).streams_of(device);
        // To wake the lane's thread takes longer than to ask a few streams. A stream that is being destroyed may still work.
        let is_idle = self.session.releases.is_idle(device)
            && streams.len() < FEW
            && streams.iter().all(|stream| self.session.hip.stream_query(*stream).is_ok());
        if !is_idle {
            return self.later(request, |session| session.hip.device_sync());
        }
        let synced = self.session.hip.device_sync();
        self.ended(synced)
    }

    /// Frees everything by itself: `hipDeviceReset` would take the worker's own memory and events too.
    pub fn device_reset(&mut self, request: &Request, _: DeviceReset) -> Answer<()> {
        let session = std::sync::Arc::clone(&self.session);
        self.uploads.close(&session);
        let device = request.lane.device();
        self.later(request, move |session| session.free_device(device))
    }
}
