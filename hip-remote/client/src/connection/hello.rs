//! How a connection begins.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use hip_protocol::calls::{DeviceCount, Hello, Welcome};
use hip_protocol::message::MAX_CHUNK;
use hip_transport::{Address, ClientKey, Reader, Unanswered, Writer, ask};

use super::inbox::Inbox;
use super::outbox::{Outbox, Post};
use super::{Connection, watch};
use crate::error::HipError;

/// A worker that lives lets a client connect within it; the next one of the list is asked else.
const PATIENCE: Duration = Duration::from_secs(5);

/// The worker opens its HIP library before it says welcome, which takes seconds on a machine with many GPUs.
const WELCOME: Duration = Duration::from_secs(30);

/// One chunk is copied on while the next one comes.
const LEAST_WINDOW: u64 = 2 * MAX_CHUNK as u64;

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
    let (mut reader, mut writer) = hip_transport::connect(address, key, PATIENCE).map_err(unreachable)?;
    reader.set_deadline(Some(Instant::now() + WELCOME));
    let token = key.map(|key| key.token(address)).unwrap_or_default();
    let hello = Hello { token, pid: std::process::id(), memory };
    let welcome = greet(&mut reader, &mut writer, &hello).map_err(unanswered)?;
    if welcome.window < LEAST_WINDOW {
        let (peer, window) = (reader.peer(), welcome.window);
        return Err(NoWorker::Unreachable(format!(
            "{peer} lets {window} bytes of copies be under way, and two chunks have {LEAST_WINDOW}: give it a greater window"
        )));
    }
    reader.set_deadline(None);
    reader.set_silence(Some(watch::DEAD)).map_err(unreachable)?;
    let connection = Arc::new(Connection {
        outbox: Mutex::new(Outbox::default()),
        filled: Condvar::new(),
        shutdown: writer.shutdown(),
        post: Mutex::new(Post::new(writer)),
        peer: reader.peer().to_owned(),
        inbox: Mutex::new(Inbox::new(reader, welcome.window)),
        next_id: AtomicU32::new(1),
        launches: AtomicU64::new(0),
        launches_waited_for: AtomicU64::new(0),
        lost: AtomicBool::new(false),
        closed: AtomicBool::new(false),
        watch: Mutex::new(None),
    });
    watch::start(&connection).map_err(|why| {
        NoWorker::Unreachable(format!("The process cannot start a thread for its connection: {why}"))
    })?;
    Ok((connection, welcome))
}

fn greet(reader: &mut Reader, writer: &mut Writer, hello: &Hello) -> Result<Welcome, Unanswered> {
    let program = std::env::args_os().next().unwrap_or_default();
    let (welcome, _) = ask(reader, writer, hello, program.as_encoded_bytes())?;
    if welcome.devices == 0 {
        // The worker's library has a reason, and the program shall see it.
        ask(reader, writer, &DeviceCount {}, &[])?;
        return Err(Unanswered::Hip(HipError::NO_DEVICE.0));
    }
    Ok(welcome)
}

fn unreachable(why: hip_transport::Error) -> NoWorker {
    NoWorker::Unreachable(why.to_string())
}

fn unanswered(why: Unanswered) -> NoWorker {
    match why {
        Unanswered::Connection(why) => unreachable(why),
        Unanswered::Hip(status) => NoWorker::Hip(HipError(status)),
    }
}
