//! What all threads of a client's process share, and how each of them answers.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::IoSlice;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use hip_protocol::calls::{Call as _, Close, Credit, Output as OutputMessage};
use hip_protocol::envelope::{CHUNK, Envelope};
use hip_protocol::field::Field;
use hip_protocol::message::{self, MAX_CHUNK};
use hip_transport::{Shutdown, Writer};

use crate::budget::Budget;
use crate::cache::Cache;
use crate::counters::{Counted, Counters};
use crate::downloads::Downloads;
use crate::events::Events;
use crate::hip::{Hip, Status};
use crate::images::Images;
use crate::locked::locked;
use crate::output::Output;
use crate::releases::Releases;
use crate::request::Request;
use crate::staging::Staging;
use crate::tables::Tables;

/// How long the last message may wait for another thread's message.
const LAST: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Session {
    pub hip: Arc<Hip>,
    /// How many devices there are, or why none.
    pub devices: Result<i32, Status>,
    /// The index of each device among the machine's GPUs.
    gpus: Vec<usize>,
    pub tables: Mutex<Tables>,
    pub budget: Budget,
    pub events: Arc<Events>,
    pub staging: Arc<Staging>,
    pub downloads: Downloads,
    pub releases: Arc<Releases>,
    pub cache: Cache,
    pub images: Images,
    pub counters: Counters,
    output: Arc<Output>,
    writer: Mutex<Writer>,
    shutdown: Shutdown,
    /// Since when each thread waits, if it does.
    waits: Mutex<HashMap<ThreadId, Instant>>,
}

thread_local! {
    /// The device that the library has as this thread's.
    static DEVICE: Cell<i32> = const { Cell::new(-1) };
}

impl Session {
    pub fn new(
        hip: Hip,
        (devices, gpus): (Result<i32, Status>, Vec<usize>),
        limit: u64,
        cache: Cache,
        output: Arc<Output>,
        releases: Releases,
        writer: Writer,
    ) -> Self {
        let (hip, releases) = (Arc::new(hip), Arc::new(releases));
        let (events, staging) = (Events::new(&hip), Staging::new(&hip, &releases));
        Self {
            devices,
            gpus,
            tables: Mutex::new(Tables::new()),
            budget: Budget::new(devices.unwrap_or_default(), limit),
            downloads: Downloads::new(&hip, &events, &staging),
            events,
            staging,
            releases,
            cache,
            images: Images::default(),
            counters: Counters::new(),
            output,
            shutdown: writer.shutdown(),
            writer: Mutex::new(writer),
            waits: Mutex::default(),
            hip,
        }
    }

    /// Makes a device the calling thread's.
    ///
    /// # Errors
    /// The library refuses.
    pub fn use_device(&self, device: i32) -> Result<(), Status> {
        if DEVICE.get() == device {
            return Ok(());
        }
        self.hip.set_device(device)?;
        DEVICE.set(device);
        Ok(())
    }

    /// Writes whole messages.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn write(&self, slices: &mut [IoSlice<'_>]) -> Result<(), String> {
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        self.counters.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        // A message that is cut off has none after it: the reader wakes, and ends the process.
        let written = self.untimed(|| locked(&self.writer).write(slices));
        written.inspect_err(|_| self.shutdown.now()).map_err(|error| error.to_string())
    }

    /// Tells the client that the worker lives. A thread that is writing at present does so as well.
    pub fn beat(&self) {
        let mut bytes = Vec::new();
        message::put(Credit::OP, 0, Envelope::default(), &Credit { bytes: 0 }, &[], &mut bytes);
        if let Ok(mut writer) = self.writer.try_lock() {
            let _ = writer.write(&mut [IoSlice::new(&bytes)]).inspect_err(|_| self.shutdown.now());
        }
    }

    /// Writes a part of what a request reads.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn write_chunk(&self, request: &Request, bytes: &[u8]) -> Result<(), String> {
        for chunk in bytes.chunks(MAX_CHUNK) {
            let envelope = Envelope { flags: CHUNK, lane: request.lane.number, status: 0 };
            let prefix = message::prefix(request.op, request.id, envelope, chunk.len());
            self.write(&mut [IoSlice::new(&prefix), IoSlice::new(chunk)])?;
        }
        Ok(())
    }

    /// Sends what belongs before the reply to a wait that has ended: what kernels printed, and finished copies.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn after_wait(&self) -> Result<(), String> {
        self.untimed(|| self.send_what_ended())
    }

    fn send_what_ended(&self) -> Result<(), String> {
        for printed in self.output.take().chunks(MAX_CHUNK) {
            let mut bytes = Vec::new();
            message::put(OutputMessage::OP, 0, Envelope::default(), &(), printed, &mut bytes);
            self.write(&mut [IoSlice::new(&bytes)])?;
        }
        self.downloads.deliver(|request, copied| {
            let status = match copied {
                Ok(bytes) => return self.write_chunk(request, bytes),
                Err(status) => status,
            };
            let mut out = Vec::new();
            request.answer::<()>(Err(status), &[], &mut out);
            self.write(&mut [IoSlice::new(&out)])
        })
    }

    /// Counts how long this thread waits for a GPU: each call of the library may.
    pub fn timed<R>(&self, wait: impl FnOnce() -> R) -> R {
        let thread = std::thread::current().id();
        locked(&self.waits).insert(thread, Instant::now());
        let result = wait();
        locked(&self.waits).remove(&thread);
        result
    }

    /// Leaves out of the count what waits for the client, or for another thread that sends to it.
    pub fn untimed<R>(&self, wait: impl FnOnce() -> R) -> R {
        let thread = std::thread::current().id();
        let timed = locked(&self.waits).remove(&thread).is_some();
        let result = wait();
        if timed {
            locked(&self.waits).insert(thread, Instant::now());
        }
        result
    }

    /// Has the lane's thread wait and reply.
    ///
    /// # Errors
    /// The sentence that ends the connection.
    pub fn later<R: Field>(
        self: &Arc<Self>,
        request: &Request,
        wait: impl FnOnce(&Arc<Self>) -> Result<R, Status> + Send + 'static,
    ) -> Result<(), String> {
        let (session, request) = (Arc::clone(self), request.clone());
        let lane = Arc::clone(&request.lane);
        lane.run(Box::new(move || {
            let lane = &request.lane;
            let result = session.use_device(lane.device()).and_then(|()| session.timed(|| wait(&session)));
            // A connection that has ended is known to its reader too, which ends the process.
            let _ = session.after_wait().and_then(|()| {
                let mut out = Vec::new();
                request.answer(result, &[], &mut out);
                if out.is_empty() { Ok(()) } else { session.write(&mut [IoSlice::new(&out)]) }
            });
        }))
    }

    /// Frees everything that the client has on a device, which is the thread's.
    ///
    /// # Errors
    /// The device has failed.
    pub fn free_device(&self, device: i32) -> Result<(), Status> {
        self.releases.wait(device);
        let mut result = self.hip.device_sync();
        let all = locked(&self.tables).take_of(device);
        let hip = &self.hip;
        let events = all.events.into_iter().map(|event| hip.event_destroy(event));
        let streams = all.streams.into_iter().map(|stream| hip.stream_destroy(stream));
        let modules = all.modules.into_iter().map(|module| hip.module_unload(module));
        let memory = all.memory.into_iter().map(|memory| self.free(memory));
        for freed in events.chain(streams).chain(modules).chain(memory) {
            result = result.and(freed);
        }
        result
    }

    /// Frees everything that the client has, as far as the devices go along.
    pub fn free_all(&self) {
        for device in 0..self.devices.unwrap_or_default() {
            let _ = self.use_device(device).and_then(|()| self.free_device(device));
        }
        self.downloads.clear();
        self.staging.clear();
        self.events.clear();
    }

    /// The longest time for which a thread has waited until now.
    pub fn longest_wait(&self) -> Duration {
        locked(&self.waits).values().min().map(Instant::elapsed).unwrap_or_default()
    }

    pub fn counted(&self) -> Counted {
        let mut counted = Counted {
            received: self.counters.received.load(Ordering::Relaxed),
            sent: self.counters.sent.load(Ordering::Relaxed),
            ..Counted::default()
        };
        for (device, gpu) in (0..).zip(&self.gpus) {
            let values = counted.launches.get_mut(*gpu).zip(counted.allocated.get_mut(*gpu));
            if let Some((launches, allocated)) = values {
                *launches = self.counters.launches(device);
                *allocated = self.budget.allocated(i32::try_from(device).unwrap_or(i32::MAX));
            }
        }
        counted
    }

    /// Says why to the client, and ends the connection, so that the reader wakes.
    pub fn close(&self, sentence: &str) {
        let mut bytes = Vec::new();
        message::put(Close::OP, 0, Envelope::default(), &Close {}, sentence.as_bytes(), &mut bytes);
        let deadline = Instant::now() + LAST;
        // A writer that is stuck has a client that reads nothing.
        while Instant::now() < deadline {
            if let Ok(mut writer) = self.writer.try_lock() {
                let _ = writer.set_patience(LAST).and_then(|()| writer.write(&mut [IoSlice::new(&bytes)]));
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.shutdown.now();
    }
}
