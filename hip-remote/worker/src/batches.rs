//! Pinned memory through which copies to devices pass.
//!
//! The reader puts chunks in, and the library copies them to a device. Small chunks of one stream share memory and an
//! event that comes after all of them. A thread for each stream gives memory and credit back, so that a stream that
//! stands still keeps nobody else's.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use hip_protocol::calls::{Call as _, Credit};
use hip_protocol::envelope::Envelope;
use hip_protocol::message;

use crate::events::Recorded;
use crate::hip::{OUT_OF_MEMORY, Status};
use crate::session::Session;
use crate::staging::Piece;

/// Where chunks begin: what a GPU reads at once.
const ALIGNMENT: usize = 64;
/// After so many bytes events are recorded, so that credit comes back while a copy goes on.
const BATCH: usize = 256 * 1024;

/// A device and the library's handle of a stream.
type Stream = (i32, u64);

/// Bytes of chunks whose credit the client has not got back.
pub type UnderWay = Arc<AtomicU64>;

/// Chunks of one stream that one event ends.
#[derive(Debug)]
struct Batch {
    piece: Piece,
    used: usize,
    /// Of the chunks, without gaps: their credit.
    bytes: usize,
}

/// A batch that has ended when its event comes; without an event the library refused, and the device is waited for.
type Closed = (Batch, Option<Recorded>);

#[derive(Debug)]
pub struct Batches {
    open: HashMap<Stream, Batch>,
    /// The streams' threads.
    closed: HashMap<Stream, Sender<Closed>>,
    credit: Arc<Kept>,
}

/// Credit that goes back when it is a good part of the window: each message wakes the client.
#[derive(Debug)]
struct Kept {
    bytes: AtomicU64,
    /// What is kept leaves the client room for a chunk in any window.
    enough: u64,
    under_way: UnderWay,
}

impl Batches {
    pub fn new(window: usize, under_way: &UnderWay) -> Self {
        let enough = window as u64 / 4;
        let credit = Kept { bytes: AtomicU64::new(0), enough, under_way: Arc::clone(under_way) };
        Self { open: HashMap::new(), closed: HashMap::new(), credit: Arc::new(credit) }
    }

    /// Finds memory for a chunk that goes to a stream: the memory, and its address.
    ///
    /// # Errors
    /// The library has no more pinned memory, or the machine no more threads.
    pub fn place(
        &mut self,
        session: &Arc<Session>,
        stream: Stream,
        length: usize,
    ) -> Result<(&mut [u8], u64), Status> {
        if !self.closed.contains_key(&stream) {
            let (closed, receiver) = channel();
            let (session, credit) = (Arc::clone(session), Arc::clone(&self.credit));
            std::thread::Builder::new()
                .name("credit".to_owned())
                .spawn(move || give_back(&session, stream.0, &receiver, &credit))
                .map_err(|_| OUT_OF_MEMORY)?;
            self.closed.insert(stream, closed);
        }
        if self.open.get(&stream).is_some_and(|batch| batch.used + length > batch.piece.len()) {
            self.close(session, stream);
        }
        let batch = match self.open.entry(stream) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(none) => {
                let piece = session.staging.take(length.max(BATCH))?;
                none.insert(Batch { piece, used: 0, bytes: 0 })
            }
        };
        let begin = batch.used;
        batch.bytes += length;
        batch.used = (begin + length).next_multiple_of(ALIGNMENT);
        let address = batch.piece.address() + begin as u64;
        Ok((batch.piece.get_mut(begin..begin + length).unwrap_or_default(), address))
    }

    /// Ends all batches where they are long enough together. The copies of all their chunks are enqueued.
    pub fn enqueued(&mut self, session: &Session) {
        if self.open.values().map(|batch| batch.bytes).sum::<usize>() >= BATCH {
            self.close_all(session);
        }
    }

    fn close_all(&mut self, session: &Session) {
        let streams: Vec<Stream> = self.open.keys().copied().collect();
        for stream in streams {
            self.close(session, stream);
        }
    }

    fn close(&mut self, session: &Session, stream: Stream) {
        let Some(batch) = self.open.remove(&stream) else { return };
        let (device, handle) = stream;
        let recorded = session.use_device(device).and_then(|()| session.events.record(device, handle)).ok();
        // The thread lives as long as the sender.
        if let Some(closed) = self.closed.get(&stream) {
            let _ = closed.send((batch, recorded));
        }
    }

    /// Ends all batches and forgets their streams, which may be destroyed after it.
    pub fn forget(&mut self, session: &Session) {
        self.close_all(session);
        self.closed.clear();
    }
}

/// Gives memory and credit of one stream back, batch by batch.
fn give_back(session: &Session, device: i32, closed: &Receiver<Closed>, kept: &Kept) {
    while let Ok((batch, recorded)) = closed.recv() {
        let ended = recorded.as_ref().map(Recorded::wait);
        if !matches!(ended, Some(Ok(()))) {
            // A chunk's memory must not change under its copy. The client is told at its next wait.
            let _ = session.use_device(device).and_then(|()| session.hip.device_sync());
        }
        let bytes = batch.bytes as u64;
        drop(batch);
        if kept.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes < kept.enough {
            continue;
        }
        let credit = kept.bytes.swap(0, Ordering::Relaxed);
        if credit == 0 {
            // Another stream's thread has just sent it.
            continue;
        }
        kept.under_way.fetch_sub(credit, Ordering::Relaxed);
        let mut out = Vec::new();
        message::put(Credit::OP, 0, Envelope::default(), &Credit { bytes: credit }, &[], &mut out);
        if session.write(&mut [std::io::IoSlice::new(&out)]).is_err() {
            return;
        }
    }
}
