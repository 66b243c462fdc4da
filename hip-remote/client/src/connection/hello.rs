//! How a connection begins.

use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use hip_protocol::calls::{Call, Close, Hello, Welcome};
use hip_protocol::envelope::ERROR;
use hip_protocol::message;
use hip_transport::{Address, ClientKey, Reader, Writer};

use super::inbox::Inbox;
use super::outbox::{Outbox, Post};
use super::{Connection, watch};
use crate::error::HipError;

/// A worker that lives answers within it; the next one of the list is asked else.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no connection.
#[derive(Debug)]
pub enum NoWorker {
    /// A sentence that names the worker.
    Unreachable(String),
    /// The worker's own HIP library fails with this.
    Hip(HipError),
}

/// Connects to a worker and says hello.
///
/// # Errors
/// The worker cannot be reached, refuses the client, or has no working HIP library.
pub fn open(
    address: &Address,
    key: Option<&ClientKey>,
    memory: u64,
) -> Result<(Arc<Connection>, Welcome), NoWorker> {
    let failed = |why: hip_transport::Error| NoWorker::Unreachable(why.to_string());
    let (mut reader, mut writer) = hip_transport::connect(address, key, PATIENCE).map_err(failed)?;
    reader.set_silence(Some(PATIENCE)).map_err(failed)?;
    let welcome = greet(&mut reader, &mut writer, key, memory)?;
    reader.set_silence(None).map_err(failed)?;
    let connection = Arc::new(Connection {
        outbox: Mutex::new(Outbox::default()),
        filled: Condvar::new(),
        shutdown: writer.shutdown(),
        post: Mutex::new(Post::new(writer)),
        peer: reader.peer().to_owned(),
        socket: reader.as_fd().as_raw_fd(),
        inbox: Mutex::new(Inbox::new(reader, welcome.window)),
        next_id: AtomicU32::new(1),
        lost: AtomicBool::new(false),
        closed: AtomicBool::new(false),
        watch: Mutex::new(None),
    });
    watch::start(&connection).map_err(|why| {
        NoWorker::Unreachable(format!("The process cannot start a thread for its connection: {why}"))
    })?;
    Ok((connection, welcome))
}

fn greet(
    reader: &mut Reader,
    writer: &mut Writer,
    key: Option<&ClientKey>,
    memory: u64,
) -> Result<Welcome, NoWorker> {
    let peer = reader.peer().to_owned();
    let failed = |why: hip_transport::Error| NoWorker::Unreachable(why.to_string());
    let program = std::env::args_os().next().unwrap_or_default();
    let hello =
        Hello { token: key.map(ClientKey::token).unwrap_or_default(), pid: std::process::id(), memory };
    let mut request = Vec::new();
    message::request(&hello, 0, 0, 0, program.as_encoded_bytes(), &mut request);
    // A worker that refuses the client has said why before it closes, whatever becomes of this.
    let written = writer.write(&mut [IoSlice::new(&request)]);
    let reply = match reader.next() {
        Ok(reply) => reply,
        Err(why) => return Err(failed(written.err().unwrap_or(why))),
    };
    let payload = reader.bytes(reply.length).map_err(failed)?;
    match reply.op {
        Close::OP => Err(NoWorker::Unreachable(format!(
            "{peer} refuses this program: {}",
            String::from_utf8_lossy(payload)
        ))),
        Hello::OP if reply.envelope.has(ERROR) => Err(NoWorker::Hip(HipError(reply.envelope.status))),
        Hello::OP => match message::fields::<Welcome>(Hello::OP, payload) {
            Ok((welcome, _)) => Ok(welcome),
            Err(why) => Err(NoWorker::Unreachable(format!("{peer} answers what is no welcome: {why}"))),
        },
        other => Err(NoWorker::Unreachable(format!(
            "{peer} answers with a message {other:#06x} in place of a welcome"
        ))),
    }
}
