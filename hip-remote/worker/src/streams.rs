//! Calls about streams and events.

use hip_protocol::calls::*;

use crate::hip::{NOT_READY, Status};
use crate::locked::locked;
use crate::request::{Answer, Request};
use crate::serving::Serving;
use crate::tables::Object;

impl Serving {
    /// Answers a wait at once where there is nothing to wait for: to wake the lane's thread takes longer than a reply.
    fn wait_unless(
        &mut self,
        request: &Request,
        ended: Result<(), Status>,
        wait: impl FnOnce(&crate::hip::Hip) -> Result<(), Status> + Send + 'static,
    ) -> Answer<()> {
        match ended {
            Err(NOT_READY) => self.later(request, move |session| wait(&session.hip)),
            ended => self.ended(ended),
        }
    }

    /// The answer to a wait or a query, which may tell that a device has failed.
    pub fn ended<R>(&mut self, ended: Result<R, Status>) -> Answer<R> {
        if !matches!(ended, Err(NOT_READY)) {
            self.violation = self.session.after_wait().err();
        }
        ended.map(Some)
    }

    pub fn stream_sync(&mut self, request: &Request, call: StreamSync) -> Answer<()> {
        let (_, stream) = self.stream(request, call.stream)?;
        let ended = self.session.hip.stream_query(stream);
        self.wait_unless(request, ended, move |hip| hip.stream_sync(stream))
    }

    pub fn stream_query(&mut self, request: &Request, call: StreamQuery) -> Answer<()> {
        let (_, stream) = self.stream(request, call.stream)?;
        let ended = self.session.hip.stream_query(stream);
        self.ended(ended)
    }

    pub fn stream_create(&mut self, request: &Request, call: StreamCreate) -> Answer<Stream> {
        locked(&self.session.tables).has_room()?;
        let hip = self.session.hip.stream_create(call.flags, call.priority)?;
        let object = Object { hip, device: request.lane.device() };
        Ok(Some(Stream { stream: locked(&self.session.tables).add_stream(object) }))
    }

    pub fn stream_destroy(&mut self, request: &Request, call: StreamDestroy) -> Answer<()> {
        let stream = locked(&self.session.tables).streams.remove(call.stream)?;
        self.uploads.close(&self.session);
        self.release(request, stream.device, move |session| {
            // HIP need not wait before it destroys. DeviceSync takes idle releases for the end of such streams.
            let _ = session.hip.stream_sync(stream.hip);
            session.hip.stream_destroy(stream.hip)
        })
    }

    pub fn stream_wait_event(&mut self, request: &Request, call: StreamWaitEvent) -> Answer<()> {
        let (_, stream) = self.stream(request, call.stream)?;
        let event = locked(&self.session.tables).events.get(call.event)?;
        self.session.hip.stream_wait(stream, event.hip, call.flags).map(Some)
    }

    pub fn stream_priorities(&mut self, _: &Request, _: StreamPriorities) -> Answer<Priorities> {
        let (least, greatest) = self.session.hip.stream_priorities()?;
        Ok(Some(Priorities { least, greatest }))
    }

    pub fn event_create(&mut self, request: &Request, call: EventCreate) -> Answer<Event> {
        locked(&self.session.tables).has_room()?;
        let hip = self.session.hip.event_create(call.flags)?;
        let object = Object { hip, device: request.lane.device() };
        Ok(Some(Event { event: locked(&self.session.tables).add_event(object) }))
    }

    pub fn event_destroy(&mut self, _: &Request, call: EventDestroy) -> Answer<()> {
        let event = locked(&self.session.tables).events.remove(call.event)?;
        self.session.hip.event_destroy(event.hip).map(Some)
    }

    pub fn event_record(&mut self, request: &Request, call: EventRecord) -> Answer<()> {
        let (_, stream) = self.stream(request, call.stream)?;
        let event = locked(&self.session.tables).events.get(call.event)?;
        self.session.hip.event_record(event.hip, stream).map(Some)
    }

    pub fn event_sync(&mut self, request: &Request, call: EventSync) -> Answer<()> {
        let event = locked(&self.session.tables).events.get(call.event)?.hip;
        let ended = self.session.hip.event_query(event);
        self.wait_unless(request, ended, move |hip| hip.event_sync(event))
    }

    pub fn event_query(&mut self, _: &Request, call: EventQuery) -> Answer<()> {
        let event = locked(&self.session.tables).events.get(call.event)?;
        let ended = self.session.hip.event_query(event.hip);
        self.ended(ended)
    }

    pub fn event_elapsed(&mut self, _: &Request, call: EventElapsed) -> Answer<Elapsed> {
        let event = |handle| locked(&self.session.tables).events.get(handle);
        let elapsed = self.session.hip.event_elapsed(event(call.start)?.hip, event(call.stop)?.hip);
        self.ended(elapsed.map(|milliseconds| Elapsed { milliseconds }))
    }
}
