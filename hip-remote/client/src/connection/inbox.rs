//! What the worker sends, and who waits for it.
//!
//! The connection has no thread that reads. Of the threads that wait one reads, and hands out what is others'; when it has its
//! own, it rings the bell of the next.

use std::cell::Cell;
use std::sync::{Arc, Condvar, PoisonError};
use std::time::Instant;

use hip_protocol::calls::LaneEnd;
use hip_protocol::envelope::{Envelope, LANES};
use hip_transport::Reader;

use super::target::Targets;
use super::{Connection, lock};
use crate::error::{HipError, Outcome};
use crate::output;

/// A thread's place at the connection: its lane, and how it is woken.
pub struct Desk {
    pub lane: u16,
    bell: Arc<Condvar>,
    deferred: Cell<Option<HipError>>,
}

impl Desk {
    /// Of the connection's own threads, which wait for no reply.
    pub(super) fn nobody() -> Self {
        Self { lane: 0, bell: Arc::default(), deferred: Cell::new(None) }
    }

    pub(super) fn defer(&self, error: HipError) {
        if self.deferred.get().is_none() {
            self.deferred.set(Some(error));
        }
    }

    pub(super) fn deferred(&self) -> Option<HipError> {
        self.deferred.take()
    }
}

pub(super) struct Reply {
    pub(super) envelope: Envelope,
    pub(super) payload: Vec<u8>,
}

#[derive(Default)]
struct Lane {
    bell: Arc<Condvar>,
    taken: bool,
    awaited: Option<(u32, Option<Reply>)>,
}

pub(super) struct Inbox {
    /// None while a thread reads.
    reader: Option<Reader>,
    lanes: Vec<Lane>,
    waiting: Vec<u16>,
    /// Bytes of chunks that may be sent.
    pub(super) credit: u64,
    pub(super) targets: Targets,
    /// When the worker sent something last.
    pub(super) heard: Instant,
    /// Why nothing more can come.
    pub(super) lost: Option<String>,
    /// What kernels printed and the program has not yet.
    pub(super) printed: Vec<u8>,
}

impl Inbox {
    pub(super) fn new(reader: Reader, credit: u64) -> Self {
        Self {
            reader: Some(reader),
            lanes: Vec::new(),
            waiting: Vec::new(),
            credit,
            targets: Targets::default(),
            heard: Instant::now(),
            lost: None,
            printed: Vec::new(),
        }
    }

    pub(super) fn expect(&mut self, desk: &Desk, id: u32) {
        if let Some(lane) = self.lanes.get_mut(usize::from(desk.lane)) {
            lane.awaited = Some((id, None));
        }
    }

    /// Takes the reply to a request, once it is there.
    pub(super) fn take_reply(&mut self, desk: &Desk, id: u32) -> Option<Reply> {
        let awaited = &mut self.lanes.get_mut(usize::from(desk.lane))?.awaited;
        match awaited.take() {
            Some((of, Some(reply))) if of == id => Some(reply),
            other => {
                *awaited = other;
                None
            }
        }
    }

    /// Lays a reply down for its thread. False where no thread waits for it.
    pub(super) fn deliver(&mut self, id: u32, reply: Reply) -> bool {
        let number = reply.envelope.lane;
        let Some(lane) = self.lanes.get_mut(usize::from(number)) else { return false };
        match &mut lane.awaited {
            Some((of, place @ None)) if *of == id => *place = Some(reply),
            _ => return false,
        }
        // A bell is a system call even where nobody listens, and most often the thread that reads has its own reply.
        if self.waiting.contains(&number) {
            self.ring(number);
        }
        true
    }

    pub(super) fn ring_all(&self) {
        for lane in &self.waiting {
            self.ring(*lane);
        }
    }

    pub(super) fn take_reader(&mut self) -> Option<Reader> {
        self.reader.take()
    }

    pub(super) fn has_reader(&self) -> bool {
        self.reader.is_some()
    }

    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Lets another thread read.
    pub(super) fn put_back(&mut self, reader: Reader) {
        self.reader = Some(reader);
        self.ring_next();
    }

    /// Whoever stops waiting sees to it that another reads.
    fn ring_next(&self) {
        if let (Some(_), Some(lane)) = (&self.reader, self.waiting.first()) {
            self.ring(*lane);
        }
    }

    fn ring(&self, lane: u16) {
        if let Some(lane) = self.lanes.get(usize::from(lane)) {
            lane.bell.notify_one();
        }
    }
}

impl Connection {
    /// A lane for a thread. It begins with device 0.
    ///
    /// # Errors
    /// More threads use HIP than a worker serves.
    pub fn sit(&self) -> Outcome<Desk> {
        let mut inbox = lock(&self.inbox);
        let free = inbox.lanes.iter().position(|lane| !lane.taken).unwrap_or_else(|| {
            inbox.lanes.push(Lane::default());
            inbox.lanes.len() - 1
        });
        let number =
            u16::try_from(free).ok().filter(|number| *number < LANES).ok_or(HipError::OUT_OF_MEMORY)?;
        let lane = inbox.lanes.get_mut(free).ok_or(HipError::OUT_OF_MEMORY)?;
        lane.taken = true;
        lane.awaited = None;
        Ok(Desk { lane: number, bell: Arc::clone(&lane.bell), deferred: Cell::new(None) })
    }

    /// Gives a lane back.
    pub fn leave(&self, desk: &Desk) {
        // Before another thread can sit there: what is the worker's of this thread is none of that one's.
        let _ = self.send(desk, &LaneEnd {}, &[]);
        if let Some(lane) = lock(&self.inbox).lanes.get_mut(usize::from(desk.lane)) {
            lane.taken = false;
        }
    }

    /// Waits until `ready` finds what it looks for.
    pub(super) fn wait<T>(&self, desk: &Desk, mut ready: impl FnMut(&mut Inbox) -> Option<T>) -> Outcome<T> {
        let mut inbox = lock(&self.inbox);
        let found = loop {
            if let Some(found) = ready(&mut inbox) {
                inbox.ring_next();
                break Ok(found);
            }
            if inbox.lost.is_some() {
                break Err(HipError::LOST);
            }
            if let Some(mut reader) = inbox.take_reader() {
                drop(inbox);
                let received = self.receive(&mut reader);
                inbox = lock(&self.inbox);
                match received {
                    // This thread looks first, and reads on without a bell.
                    Ok(()) => inbox.reader = Some(reader),
                    Err(why) => self.lose(&mut inbox, why),
                }
            } else {
                inbox.waiting.push(desk.lane);
                inbox = desk.bell.wait(inbox).unwrap_or_else(PoisonError::into_inner);
                inbox.waiting.retain(|lane| *lane != desk.lane);
            }
        };
        let printed = std::mem::take(&mut inbox.printed);
        drop(inbox);
        // Only now: a program whose output nobody takes would keep its other threads from reading.
        if !printed.is_empty() {
            output::print(&printed);
        }
        found
    }
}
