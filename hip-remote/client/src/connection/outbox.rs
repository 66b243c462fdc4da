//! Calls on their way out.

use std::io::IoSlice;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use hip_protocol::calls::Call;
use hip_protocol::message;
use hip_transport::{Error, Writer};

use super::inbox::Desk;
use super::{Connection, lock};

/// So many bytes of calls wait in memory; then their senders wait for the network instead.
const MOST: usize = 1024 * 1024;

/// Calls in the order in which they will be executed.
#[derive(Default)]
pub(super) struct Outbox {
    calls: Vec<u8>,
    pump_sleeps: bool,
}

/// Who holds it may write. The calls leave the outbox only then, so that their order is the network's.
pub(super) struct Post {
    writer: Writer,
    calls: Vec<u8>,
}

impl Post {
    pub(super) fn new(writer: Writer) -> Self {
        Self { writer, calls: Vec::new() }
    }
}

impl Connection {
    /// Puts a call into the outbox. With `wake` the pump flushes it; without, the caller does. True where the outbox is full: then
    /// the caller should flush it, which makes it wait for the network.
    pub(super) fn append<C: Call>(
        &self,
        call: &C,
        id: u32,
        flags: u16,
        desk: &Desk,
        variable: &[u8],
        wake: bool,
    ) -> bool {
        let mut outbox = lock(&self.outbox);
        message::request(call, id, flags, desk.lane, variable, &mut outbox.calls);
        let full = outbox.calls.len() > MOST;
        let wake = wake && std::mem::take(&mut outbox.pump_sleeps);
        drop(outbox);
        if wake {
            self.filled.notify_one();
        }
        full
    }

    /// Writes the calls of the outbox, and a chunk straight after them. False where the chunk is not in the program's memory: then
    /// the worker gets zeroes.
    pub(super) fn flush(&self, prefix: &[u8], chunk: &[u8]) -> bool {
        let mut post = lock(&self.post);
        let Post { writer, calls } = &mut *post;
        std::mem::swap(&mut lock(&self.outbox).calls, calls);
        if calls.is_empty() && prefix.is_empty() {
            return true;
        }
        let written = writer.write(&mut [IoSlice::new(calls), IoSlice::new(prefix), IoSlice::new(chunk)]);
        calls.clear();
        match written {
            Ok(()) => true,
            Err(Error::Fault) => false,
            Err(_) => {
                // Whoever reads finds the connection's end, after what the worker may have said before it.
                self.shutdown.now();
                true
            }
        }
    }

    /// The pump: a thread that sends the calls for which nobody waits.
    pub(super) fn pump(&self) {
        loop {
            let mut outbox = lock(&self.outbox);
            while outbox.calls.is_empty() {
                if self.closed.load(Ordering::Acquire) || self.is_lost() {
                    return;
                }
                outbox.pump_sleeps = true;
                outbox = self.filled.wait(outbox).unwrap_or_else(PoisonError::into_inner);
            }
            outbox.pump_sleeps = false;
            drop(outbox);
            self.flush(&[], &[]);
        }
    }
}
