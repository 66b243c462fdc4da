//! The thread that reads: it executes every call that does not wait in the order of arrival, and answers from there.

use std::collections::HashMap;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hip_protocol::calls::*;
use hip_protocol::envelope::{CHUNK, Envelope, LANES, NO_REPLY};
use hip_protocol::field::Field;
use hip_protocol::header::VERSION_2;
use hip_protocol::message;
use hip_transport::{Error, Message, Reader};

use crate::hip::Status;
use crate::lane::Lane;
use crate::locked::locked;
use crate::request::{Answer, Request};
use crate::rows::Rows;
use crate::session::Session;
use crate::uploads::Uploads;

/// Replies are sent at this length, even while further calls are there already.
const REPLIES: usize = 64 * 1024;
/// `hipErrorNotSupported`.
const NOT_SUPPORTED: Status = 801;

#[derive(Debug)]
pub struct Serving {
    pub session: Arc<Session>,
    pub uploads: Uploads,
    /// Replies that were not sent yet: while calls are there, their replies go together.
    pub out: Vec<u8>,
    /// How many bytes of chunks may be under way.
    pub window: usize,
    /// Why the connection ends after this call.
    pub violation: Option<String>,
    lanes: HashMap<u16, Arc<Lane>>,
}

/// Executes the call with the request's code. Those of the second list have variable bytes.
macro_rules! dispatch {
    ($serving:ident, $request:ident, $payload:ident; [$($call:ident => $method:ident,)*] [$($long:ident => $long_method:ident,)*]) => {
        match $request.op {
            $($call::OP => {
                let (call, rest) = message::fields::<$call>($request.op, $payload).map_err(|why| why.to_string())?;
                if !rest.is_empty() {
                    return Err(format!("{} came with {} bytes too many", stringify!($call), rest.len()));
                }
                let answer = $serving.$method(&$request, call);
                $serving.answered(&$request, answer);
            })*
            $($long::OP => {
                let (call, variable) = message::fields::<$long>($request.op, $payload).map_err(|why| why.to_string())?;
                let answer = $serving.$long_method(&$request, call, variable);
                $serving.answered(&$request, answer);
            })*
            Credit::OP | Output::OP => return Err("a client sent what only a worker sends".to_owned()),
            _ => $serving.answered::<()>(&$request, Err(NOT_SUPPORTED)),
        }
    };
}

impl Serving {
    pub fn new(session: Arc<Session>, window: usize) -> Self {
        Self {
            session,
            uploads: Uploads::new(window),
            out: Vec::new(),
            window,
            violation: None,
            lanes: HashMap::new(),
        }
    }

    /// Serves the client until it closes the connection.
    ///
    /// # Errors
    /// The sentence that ends the connection.
    pub fn serve(&mut self, reader: &mut Reader) -> Result<(), String> {
        loop {
            self.reply_unless(reader.has(message::PREFIX))?;
            let message = match reader.next() {
                Ok(message) => message,
                Err(Error::Ended { .. }) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            };
            let received = message::PREFIX + message.length;
            self.session.counters.received.fetch_add(received as u64, Ordering::Relaxed);
            if message.version != VERSION_2 {
                return Err("a message of version 1 came on a connection of version 2".to_owned());
            }
            // What is to come of a message may take long: nobody's reply waits for it.
            self.reply_unless(reader.has(message.length))?;
            if message.envelope.has(CHUNK) {
                self.chunk(reader, &message)?;
            } else if message.op == Close::OP {
                return Ok(());
            } else {
                let payload = reader.bytes(message.length).map_err(|error| error.to_string())?;
                self.call(&message, payload)?;
            }
            if let Some(violation) = self.violation.take() {
                return Err(violation);
            }
        }
    }

    /// Sends the replies, unless what is read next is there already.
    fn reply_unless(&mut self, is_there: bool) -> Result<(), String> {
        if !self.out.is_empty() && (!is_there || self.out.len() >= REPLIES) {
            self.session.write(&mut [IoSlice::new(&self.out)])?;
            self.out.clear();
        }
        Ok(())
    }

    fn call(&mut self, message: &Message, payload: &[u8]) -> Result<(), String> {
        let request = Request {
            op: message.op,
            id: message.id,
            one_way: message.envelope.has(NO_REPLY),
            lane: self.lane(message.envelope.lane)?,
        };
        let session = Arc::clone(&self.session);
        session.timed(|| self.execute(request, payload))
    }

    fn execute(&mut self, request: Request, payload: &[u8]) -> Result<(), String> {
        // A device that fails answers each of its calls itself.
        let _ = self.session.use_device(request.lane.device());
        dispatch! { self, request, payload; [
            DeviceCount => device_count,
            Ping => ping,
            DeviceProperties => device_properties,
            DeviceAttribute => device_attribute,
            MemoryInfo => memory_info,
            SetDevice => set_device,
            DeviceSync => device_sync,
            DeviceReset => device_reset,
            LaneEnd => lane_end,
            Malloc => malloc,
            Free => free,
            Memset => memset,
            HostToDevice => host_to_device,
            DeviceToHost => device_to_host,
            DeviceToDevice => device_to_device,
            ModuleLoad => module_load,
            ModuleImage => module_image,
            ModuleUnload => module_unload,
            FunctionAttribute => function_attribute,
            Occupancy => occupancy,
            OccupancyBlock => occupancy_block,
            StreamSync => stream_sync,
            StreamCreate => stream_create,
            StreamDestroy => stream_destroy,
            StreamQuery => stream_query,
            StreamWaitEvent => stream_wait_event,
            StreamPriorities => stream_priorities,
            EventCreate => event_create,
            EventDestroy => event_destroy,
            EventRecord => event_record,
            EventSync => event_sync,
            EventQuery => event_query,
            EventElapsed => event_elapsed,
            ] [
            Hello => hello_again,
            Launch => launch,
            ModuleFunction => module_function,
            ModuleGlobal => module_global,
        ] }
        Ok(())
    }

    fn lane(&mut self, number: u16) -> Result<Arc<Lane>, String> {
        if number >= LANES {
            return Err(format!("a message has the lane {number}, and {} is the last one", LANES - 1));
        }
        let lane = self.lanes.entry(number).or_insert_with(|| Arc::new(Lane::new(number)));
        Ok(Arc::clone(lane))
    }

    fn answered<R: Field>(&mut self, request: &Request, answer: Answer<R>) {
        if let Some(result) = answer.transpose() {
            request.answer(result, &[], &mut self.out);
        }
    }

    /// Answers a wait that has ended at once.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn waited(&mut self, request: &Request, result: Result<(), Status>) -> Result<(), String> {
        self.session.after_wait()?;
        request.answer(result, &[], &mut self.out);
        Ok(())
    }

    /// Has the lane's thread wait and answer.
    pub fn later<R: Field>(
        &mut self,
        request: &Request,
        wait: impl FnOnce(&Arc<Session>) -> Result<R, Status> + Send + 'static,
    ) -> Answer<R> {
        self.violation = self.session.later(request, wait).err();
        Ok(None)
    }

    /// # Errors
    /// The rows are not in one allocation of the client.
    pub fn check(&self, rows: &Rows) -> Result<(), Status> {
        locked(&self.session.tables).check(rows)
    }

    /// A stream's device and the library's handle of it.
    ///
    /// # Errors
    /// The client has no such stream.
    pub fn stream(&self, request: &Request, stream: u64) -> Result<(i32, u64), Status> {
        match stream {
            0 => Ok((request.lane.device(), 0)),
            PER_THREAD => {
                let device = request.lane.device();
                self.session.use_device(device)?;
                let make = || self.session.hip.stream_create(0, 0);
                let stream = locked(&self.session.tables).lane_stream(request.lane.number, device, make)?;
                Ok((device, stream))
            }
            handle => {
                let stream = locked(&self.session.tables).streams.get(handle)?;
                Ok((stream.device, stream.hip))
            }
        }
    }

    fn ping(&mut self, request: &Request, _: Ping) -> Answer<()> {
        // No failure of an earlier call may hide in it: no thread of the client looks at it.
        if !request.one_way {
            let envelope = Envelope { flags: 0, lane: request.lane.number, status: 0 };
            message::put(request.op, request.id, envelope, &(), &[], &mut self.out);
        }
        Ok(None)
    }

    /// Whatever a call of the thread that ended still fails with, nobody asks for it any more.
    fn lane_end(&mut self, request: &Request, _: LaneEnd) -> Answer<()> {
        self.lanes.remove(&request.lane.number);
        Ok(Some(()))
    }

    fn hello_again(&mut self, _: &Request, _: Hello, _: &[u8]) -> Answer<()> {
        self.violation = Some("Hello came a second time".to_owned());
        Ok(None)
    }
}
