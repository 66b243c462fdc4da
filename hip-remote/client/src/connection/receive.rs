//! Reading what the worker sends.

use std::sync::atomic::Ordering;
use std::time::Instant;

use hip_protocol::calls::{Call as _, Close, Credit, DeviceToHost, Output, Ping};
use hip_protocol::envelope::{CHUNK, ERROR};
use hip_protocol::header::VERSION_2;
use hip_protocol::message;
use hip_transport::{Message, Reader, printable};

use super::inbox::{Inbox, Reply};
use super::{Connection, lock};

impl Connection {
    /// Takes one message in and hands it out.
    ///
    /// # Errors
    /// Why the connection cannot be used any more.
    pub(super) fn receive(&self, reader: &mut Reader) -> Result<(), String> {
        let message = reader.next().map_err(|why| why.to_string())?;
        if message.version != VERSION_2 {
            return Err(format!("the worker sent a message of version {}", message.version));
        }
        if message.envelope.has(CHUNK) {
            return self.receive_chunk(reader, &message);
        }
        let payload = reader.bytes(message.length).map_err(|why| why.to_string())?;
        if message.op == Close::OP {
            return Err(format!("the worker says: {}", printable(payload)));
        }
        let mut inbox = lock(&self.inbox);
        inbox.heard = Instant::now();
        match message.op {
            Output::OP => inbox.printed.extend_from_slice(payload),
            Ping::OP => {}
            Credit::OP => {
                let (credit, _) =
                    message::fields::<Credit>(message.op, payload).map_err(|why| why.to_string())?;
                inbox.credit = inbox.credit.saturating_add(credit.bytes);
                // Who waits for credit looks like who waits for a reply.
                inbox.ring_all();
            }
            // Its failure comes with a reply to its lane, too.
            DeviceToHost::OP if message.envelope.has(ERROR) && inbox.targets.fail(message.id) => {}
            _ => {
                let reply = Reply { envelope: message.envelope, payload: payload.to_vec() };
                if !inbox.deliver(message.id, reply) {
                    return Err(format!("the worker sent a reply {} that no thread waits for", message.id));
                }
            }
        }
        Ok(())
    }

    /// Reads a part of a copy straight into the program's memory.
    fn receive_chunk(&self, reader: &mut Reader, message: &Message) -> Result<(), String> {
        let span = lock(&self.inbox).targets.span(message.id, message.length);
        let Some(span) = span else {
            return Err(format!("the worker sent {} bytes that no copy waits for", message.length));
        };
        let faulted = span.fill(reader).map_err(|why| why.to_string())?;
        let mut inbox = lock(&self.inbox);
        inbox.heard = Instant::now();
        if inbox.targets.filled(message.id, message.length, faulted) {
            return Ok(());
        }
        Err("an asynchronous copy's target is not all the program's memory".to_owned())
    }

    /// Ends all that waits: nothing is known of the calls under way, so nothing may be made again.
    pub(super) fn lose(&self, inbox: &mut Inbox, why: String) {
        inbox.lost = Some(why);
        inbox.targets.clear();
        self.lost.store(true, Ordering::Release);
        self.shutdown.now();
        inbox.ring_all();
        self.wake_threads();
    }
}
