//! Copies from a device to the client.
//!
//! The GPU copies into pinned memory, and the worker sends from there. A copy that nobody waits for stands in a list
//! until a wait has ended, of whatever: then every copy that has ended too is sent before the reply.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use hip_protocol::message::USUAL_CHUNK;

use crate::events::{Events, Recorded};
use crate::hip::{Hip, NOT_READY, OUT_OF_MEMORY, Status};
use crate::locked::locked;
use crate::request::Request;
use crate::rows::Rows;
use crate::staging::{Piece, Staging, length};

/// The most bytes of pinned memory that the list may hold. A client bounds its bytes to an eighth of it.
const MOST: usize = 256 * 1024 * 1024;

/// How many chunks of one copy are in pinned memory: the next are copied while one is sent.
const AHEAD: usize = 4;

/// Packed bytes on their way into pinned memory.
#[derive(Debug)]
struct Part {
    piece: Piece,
    bytes: usize,
    copied: Recorded,
}

impl Part {
    /// Enqueues the copy of `bytes` packed bytes. The thread's device is the stream's.
    fn begin(
        downloads: &Downloads,
        rows: &Rows,
        begin: u64,
        bytes: usize,
        (device, stream): (i32, u64),
    ) -> Result<Self, Status> {
        let piece = downloads.staging.take(bytes)?;
        let copied = rows.parts(begin, bytes).try_for_each(|part| {
            let to = piece.address() + part.offset as u64;
            if part.height == 1 {
                return downloads.hip.copy(to, part.pointer, part.width, stream);
            }
            let pitch = usize::try_from(rows.pitch).unwrap_or(usize::MAX);
            downloads.hip.copy_rows(to, part.width, part.pointer, pitch, part.width, part.height, stream)
        });
        match copied.and_then(|()| downloads.events.record(device, stream)) {
            Ok(copied) => Ok(Self { piece, bytes, copied }),
            Err(status) => {
                // The copies before the one that was refused may still write to the memory.
                let _ = downloads.hip.stream_sync(stream);
                Err(status)
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        self.piece.get(..self.bytes).unwrap_or_default()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // The memory goes back: the GPU must no longer write to it.
        let _ = self.copied.wait();
    }
}

/// A copy for which a lane waits.
#[derive(Debug)]
pub struct Download {
    rows: Rows,
    stream: (i32, u64),
    parts: VecDeque<Part>,
    begun: u64,
}

impl Download {
    /// Enqueues the first chunks, so that the copy stands in its stream before any later call.
    ///
    /// # Errors
    /// The library refuses.
    pub fn begin(downloads: &Downloads, rows: Rows, stream: (i32, u64)) -> Result<Self, Status> {
        let mut download = Self { rows, stream, parts: VecDeque::new(), begun: 0 };
        download.go_on(downloads)?;
        Ok(download)
    }

    fn go_on(&mut self, downloads: &Downloads) -> Result<(), Status> {
        while self.parts.len() < AHEAD && self.begun < self.rows.bytes() {
            let bytes = self.rows.chunk(self.begun, USUAL_CHUNK);
            self.parts.push_back(Part::begin(downloads, &self.rows, self.begun, bytes, self.stream)?);
            self.begun += bytes as u64;
        }
        Ok(())
    }

    /// Sends each chunk when it has been copied.
    ///
    /// # Errors
    /// The device fails, or the connection has ended, after which no status matters.
    pub fn finish(
        mut self,
        downloads: &Downloads,
        mut send: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), Status> {
        let mut result = Ok(());
        while let Some(part) = self.parts.pop_front() {
            let waited = part.copied.wait();
            result = result.and(waited);
            if result.is_ok() {
                if send(part.bytes()).is_err() {
                    continue;
                }
                drop(part);
                result = self.go_on(downloads);
            }
        }
        result
    }
}

/// What copies to the client need, and the copies for which no thread waits.
#[derive(Debug)]
pub struct Downloads {
    hip: Arc<Hip>,
    events: Arc<Events>,
    staging: Arc<Staging>,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    parts: Vec<(Request, Part)>,
    /// The pinned memory of all parts.
    pinned: usize,
}

impl Downloads {
    pub fn new(hip: &Arc<Hip>, events: &Arc<Events>, staging: &Arc<Staging>) -> Self {
        let (hip, events, staging) = (Arc::clone(hip), Arc::clone(events), Arc::clone(staging));
        Self { hip, events, staging, list: Mutex::default() }
    }

    /// # Errors
    /// The library refuses, or too many bytes are under way.
    pub fn begin(&self, request: &Request, rows: Rows, stream: (i32, u64)) -> Result<(), Status> {
        let bytes = usize::try_from(rows.bytes()).map_err(|_| OUT_OF_MEMORY)?;
        let mut list = locked(&self.list);
        if list.pinned + length(bytes) > MOST {
            return Err(OUT_OF_MEMORY);
        }
        let part = Part::begin(self, &rows, 0, bytes, stream)?;
        list.pinned += part.piece.len();
        list.parts.push((request.clone(), part));
        Ok(())
    }

    /// Forgets all copies, which have ended with their devices.
    pub fn clear(&self) {
        *locked(&self.list) = List::default();
    }

    /// Sends every copy that has ended, or says why it failed. Whoever comes meanwhile waits until they are sent, so that no
    /// reply overtakes them.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn deliver(
        &self,
        mut send: impl FnMut(&Request, Result<&[u8], Status>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut list = locked(&self.list);
        let parts = std::mem::take(&mut list.parts);
        // The last first: where it has ended, those before it in its stream have, and are sent before it.
        let mut ended: Vec<_> = parts.iter().rev().map(|(_, part)| part.copied.query()).collect();
        for (request, part) in parts {
            let Some(ended) = ended.pop() else { break };
            if ended == Err(NOT_READY) {
                list.parts.push((request, part));
                continue;
            }
            list.pinned -= part.piece.len();
            send(&request, ended.map(|()| part.bytes()))?;
        }
        Ok(())
    }
}
