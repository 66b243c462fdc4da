//! Pinned memory through which copies to devices pass, in the order in which they came.
//!
//! The reader puts chunks in, and the library copies them to a device. A thread of the ring's own gives their space and
//! their credit back. Chunks of one stream in a row share an event: it comes after all of them.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use hip_protocol::calls::{Call as _, Credit};
use hip_protocol::envelope::Envelope;
use hip_protocol::message::{self, MAX_CHUNK};

use crate::events::Recorded;
use crate::hip::{Pinned, Status};
use crate::locked::locked;
use crate::session::Session;

/// Where chunks begin: what a GPU reads at once.
const ALIGNMENT: usize = 64;
/// From this length on chunks are aligned: what is lost for it is little then.
const ALIGNED: usize = 4096;
/// After so many bytes an event is recorded, so that credit comes back while a copy goes on.
const BATCH: usize = 256 * 1024;
/// Bytes of chunks whose credit the client has not got back.
pub type UnderWay = Arc<AtomicU64>;

/// Chunks of one stream that one event ends.
#[derive(Debug)]
struct Batch {
    stream: (i32, u64),
    /// Of the ring, gaps included.
    space: usize,
    /// Of the chunks: their credit.
    bytes: usize,
}

/// A batch that has ended when its event comes; without an event the library refused, and the device is waited for.
type Closed = (Batch, Option<Recorded>);

/// The used space, and a notice when it becomes less.
type Used = Arc<(Mutex<usize>, Condvar)>;

#[derive(Debug)]
pub struct Ring {
    pinned: Pinned,
    next: usize,
    used: Used,
    open: Option<Batch>,
    closed: Sender<Closed>,
}

impl Ring {
    /// A ring for chunks of `window` bytes together.
    ///
    /// # Errors
    /// The library has no more pinned memory, or the machine no more threads.
    pub fn new(session: &Arc<Session>, window: usize, under_way: &UnderWay) -> Result<Self, Status> {
        // The last chunk before the ring's end may leave a gap of nearly its length; alignment takes a 64th at most.
        let pinned = Pinned::new(&session.hip, window + window / 32 + 2 * MAX_CHUNK)?;
        let used = Used::default();
        let (closed, receiver) = channel();
        let (session, own, under_way) = (Arc::clone(session), Arc::clone(&used), Arc::clone(under_way));
        let enough = window as u64 / 4;
        std::thread::Builder::new()
            .name("credit".to_owned())
            .spawn(move || give_back(&session, &receiver, &own, &under_way, enough))
            .map_err(|_| crate::hip::OUT_OF_MEMORY)?;
        Ok(Self { pinned, next: 0, used, open: None, closed })
    }

    /// Finds space for a chunk that goes to a stream: its place.
    pub fn place(&mut self, session: &Session, stream: (i32, u64), length: usize) -> Range<usize> {
        if self.open.as_ref().is_some_and(|batch| batch.stream != stream) {
            self.close(session);
        }
        let mut used = locked(&self.used.0);
        if *used == 0 {
            // What was used last is in the processor's cache.
            self.next = 0;
        }
        let mut begin = if length < ALIGNED { self.next } else { self.next.next_multiple_of(ALIGNMENT) };
        let mut space = begin - self.next + length;
        if begin + length > self.pinned.length() {
            space = self.pinned.length() - self.next + length;
            begin = 0;
        }
        let all = self.pinned.length();
        used =
            self.used.1.wait_while(used, |used| *used + space > all).unwrap_or_else(PoisonError::into_inner);
        *used += space;
        drop(used);
        self.next = begin + length;
        let batch = self.open.get_or_insert(Batch { stream, space: 0, bytes: 0 });
        batch.space += space;
        batch.bytes += length;
        begin..self.next
    }

    pub fn bytes_mut(&mut self, place: Range<usize>) -> &mut [u8] {
        self.pinned.bytes_mut(place)
    }

    pub fn address(&self, at: usize) -> u64 {
        self.pinned.address(at)
    }

    /// Ends the batch where it is long enough. The copies of all its chunks are enqueued.
    pub fn enqueued(&mut self, session: &Session) {
        if self.open.as_ref().is_some_and(|batch| batch.bytes >= BATCH) {
            self.close(session);
        }
    }

    /// Ends the batch, if there is one.
    pub fn close(&mut self, session: &Session) {
        let Some(batch) = self.open.take() else { return };
        let (device, stream) = batch.stream;
        let recorded = session.use_device(device).and_then(|()| session.events.record(device, stream)).ok();
        // The thread lives as long as the sender.
        let _ = self.closed.send((batch, recorded));
    }
}

/// Gives space back batch by batch, and credit when it is a good part of the window.
fn give_back(session: &Session, closed: &Receiver<Closed>, used: &Used, under_way: &UnderWay, enough: u64) {
    let mut credit = 0;
    while let Ok((batch, recorded)) = closed.recv() {
        let ended = recorded.as_ref().map(Recorded::wait);
        if !matches!(ended, Some(Ok(()))) {
            // A chunk's memory must not change under its copy. The client is told at its next wait.
            let _ = session.use_device(batch.stream.0).and_then(|()| session.hip.device_sync());
        }
        *locked(&used.0) -= batch.space;
        used.1.notify_one();
        credit += batch.bytes as u64;
        // Each message wakes the client. What is kept leaves it room for a chunk in any window.
        if credit < enough {
            continue;
        }
        under_way.fetch_sub(credit, Ordering::Relaxed);
        let mut out = Vec::new();
        message::put(Credit::OP, 0, Envelope::default(), &Credit { bytes: credit }, &[], &mut out);
        credit = 0;
        if session.write(&mut [std::io::IoSlice::new(&out)]).is_err() {
            return;
        }
    }
}
