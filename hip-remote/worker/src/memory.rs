//! Calls about memory, but for what comes from the client.

use std::sync::Once;

use hip_protocol::calls::*;

use crate::downloads::Download;
use crate::hip::{INVALID_VALUE, OUT_OF_MEMORY, Status};
use crate::locked::locked;
use crate::request::{Answer, Request};
use crate::rows::Rows;
use crate::serving::Serving;
use crate::session::Session;
use crate::tables::Allocated;

/// A program may ask again and again.
static SAID: Once = Once::new();

fn size(value: u64) -> Result<usize, Status> {
    usize::try_from(value).map_err(|_| INVALID_VALUE)
}

impl Session {
    /// Allocates on a device, which is the thread's.
    ///
    /// # Errors
    /// The client has as much as it may, or the library has no more.
    pub fn malloc(&self, device: i32, bytes: u64) -> Result<Allocation, Status> {
        locked(&self.tables).has_room()?;
        self.budget.take(device, bytes).inspect_err(|_| {
            SAID.call_once(|| {
                log!(
                    "a client has reached its limit of {} bytes on device {device}: --memory or its TF_GPU_MEMORY_LIMIT",
                    self.budget.limit
                )
            });
        })?;
        let allocated = size(bytes).and_then(|size| self.hip.malloc(size));
        let pointer = allocated.inspect_err(|_| self.budget.give(device, bytes))?;
        if bytes > 0 {
            locked(&self.tables).add_memory(Allocated { pointer, bytes, device });
        }
        Ok(Allocation { pointer })
    }

    /// Frees an allocation. It counts until then: the library may wait for its device first.
    ///
    /// # Errors
    /// The device has failed.
    pub fn free(&self, Allocated { pointer, bytes, device }: Allocated) -> Result<(), Status> {
        self.hip.free(pointer)?;
        self.budget.give(device, bytes);
        Ok(())
    }
}

impl Serving {
    pub fn malloc(&mut self, request: &Request, call: Malloc) -> Answer<Allocation> {
        let device = request.lane.device();
        // A release that ends after the library has refused counts as well.
        let was_idle = self.session.releases.is_idle(device);
        match self.session.malloc(device, call.bytes) {
            // What the client has freed before may be enough.
            Err(OUT_OF_MEMORY) if !was_idle => self.later(request, move |session| {
                session.releases.wait(device);
                session.malloc(device, call.bytes)
            }),
            allocated => allocated.map(Some),
        }
    }

    pub fn free(&mut self, request: &Request, call: Free) -> Answer<()> {
        if call.pointer == 0 {
            return Ok(Some(()));
        }
        let memory = locked(&self.session.tables).remove_memory(call.pointer)?;
        self.release(request, memory.device, move |session| session.free(memory))
    }

    /// Releases something in the order of its device's releases, and answers afterwards.
    pub fn release(
        &mut self,
        request: &Request,
        device: i32,
        free: impl FnOnce(&Session) -> Result<(), Status> + Send + 'static,
    ) -> Answer<()> {
        let (session, request) = (std::sync::Arc::clone(&self.session), request.clone());
        self.session.releases.push(device, move || {
            let result = session.use_device(device).and_then(|()| session.timed(|| free(&session)));
            let mut out = Vec::new();
            let is_waited_for = !request.one_way;
            // A connection that has ended is known to its reader too, which ends the process.
            let _ = if is_waited_for { session.after_wait() } else { Ok(()) };
            request.answer(result, &[], &mut out);
            if !out.is_empty() {
                let _ = session.write(&mut [std::io::IoSlice::new(&out)]);
            }
        });
        Ok(None)
    }

    /// Answers a client that waits when the stream's work is done.
    fn after(&mut self, request: &Request, stream: u64) -> Answer<()> {
        if request.one_way {
            return Ok(Some(()));
        }
        self.later(request, move |session| session.hip.stream_sync(stream))
    }

    pub fn memset(&mut self, request: &Request, call: Memset) -> Answer<()> {
        // HIP has no call for rows of wider elements.
        if !matches!((call.element, call.height), (1, _) | (2 | 4, 1)) {
            return Err(INVALID_VALUE);
        }
        let width = call.width.checked_mul(u64::from(call.element)).ok_or(INVALID_VALUE)?;
        let rows = Rows::new(call.pointer, call.pitch, width, call.height)?;
        let (device, stream) = self.stream(request, call.stream)?;
        if rows.bytes() > 0 {
            self.check(&rows)?;
            self.session.use_device(device)?;
            let hip = &self.session.hip;
            if call.height == 1 {
                hip.set(call.pointer, call.value, call.element, size(call.width)?, stream)?;
            } else {
                let [value, ..] = call.value.to_le_bytes();
                hip.set_rows(
                    call.pointer,
                    size(call.pitch)?,
                    value,
                    size(width)?,
                    size(call.height)?,
                    stream,
                )?;
            }
        }
        self.after(request, stream)
    }

    pub fn device_to_host(&mut self, request: &Request, call: DeviceToHost) -> Answer<()> {
        let rows = Rows::new(call.pointer, call.pitch, call.width, call.height)?;
        let stream = self.stream(request, call.stream)?;
        if rows.bytes() == 0 {
            return Ok(Some(()));
        }
        self.check(&rows)?;
        self.session.use_device(stream.0)?;
        if request.one_way {
            // Another thread may be sending what has ended, to a client that takes it slowly.
            let begun = self.session.untimed(|| self.session.downloads.begin(request, rows, stream));
            return begun.map(Some);
        }
        let download = Download::begin(&self.session.downloads, rows, stream)?;
        let own = request.clone();
        self.later(request, move |session| {
            session.use_device(stream.0)?;
            download.finish(&session.downloads, |bytes| session.write_chunk(&own, bytes))
        })
    }

    pub fn device_to_device(&mut self, request: &Request, call: DeviceToDevice) -> Answer<()> {
        let to = Rows::new(call.to, call.to_pitch, call.width, call.height)?;
        let from = Rows::new(call.from, call.from_pitch, call.width, call.height)?;
        let (device, stream) = self.stream(request, call.stream)?;
        if to.bytes() > 0 {
            self.check(&to)?;
            self.check(&from)?;
            self.session.use_device(device)?;
            let hip = &self.session.hip;
            if call.height == 1 {
                hip.copy(call.to, call.from, size(call.width)?, stream)?;
            } else {
                let (to_pitch, from_pitch) = (size(call.to_pitch)?, size(call.from_pitch)?);
                hip.copy_rows(
                    call.to,
                    to_pitch,
                    call.from,
                    from_pitch,
                    size(call.width)?,
                    size(call.height)?,
                    stream,
                )?;
            }
        }
        self.after(request, stream)
    }
}
