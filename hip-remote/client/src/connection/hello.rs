//! How a connection begins.

use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use hip_protocol::calls::{Call, Close, DeviceCount, Hello, Welcome};
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
        window: welcome.window,
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
    let program = std::env::args_os().next().unwrap_or_default();
    let token = key.map(ClientKey::token).unwrap_or_default();
    let hello = Hello { token, pid: std::process::id(), memory };
    let welcome = ask(reader, writer, &hello, program.as_encoded_bytes())?;
    if welcome.devices == 0 {
        // The worker's library has a reason, and the program shall see it.
        ask(reader, writer, &DeviceCount {}, &[])?;
        return Err(NoWorker::Hip(HipError::NO_DEVICE));
    }
    Ok(welcome)
}

/// Makes a call on a connection that nobody else uses yet.
fn ask<C: Call>(
    reader: &mut Reader,
    writer: &mut Writer,
    call: &C,
    variable: &[u8],
) -> Result<C::Reply, NoWorker> {
    let peer = reader.peer().to_owned();
    let failed = |why: hip_transport::Error| NoWorker::Unreachable(why.to_string());
    let mut request = Vec::new();
    message::request(call, 0, 0, 0, variable, &mut request);
    // A worker that refuses the client has said why before it closes, whatever becomes of this.
    let written = writer.write(&mut [IoSlice::new(&request)]);
    let reply = match reader.next() {
        Ok(reply) => reply,
        Err(why) => return Err(failed(written.err().unwrap_or(why))),
    };
    let payload = reader.bytes(reply.length).map_err(failed)?;
    if reply.op == Close::OP {
        let why = String::from_utf8_lossy(payload);
        return Err(NoWorker::Unreachable(format!("{peer} refuses this program: {why}")));
    }
    if reply.op != C::OP {
        return Err(NoWorker::Unreachable(format!(
            "{peer} answers a greeting with a message {:#06x}",
            reply.op
        )));
    }
    if reply.envelope.has(ERROR) {
        return Err(NoWorker::Hip(HipError(reply.envelope.status)));
    }
    match message::fields::<C::Reply>(C::OP, payload) {
        Ok((fields, _)) => Ok(fields),
        Err(why) => Err(NoWorker::Unreachable(format!("{peer} answers a greeting wrongly: {why}"))),
    }
}
