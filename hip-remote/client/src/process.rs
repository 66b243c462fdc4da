//! The process's worker: which one it is, and when another takes its place.

use std::cell::RefCell;
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use hip_abi::errors;

use crate::connection::{self, NoWorker, lock};
use crate::error::{HipError, Outcome};
use crate::host_memory::{self, Ranges};
use crate::registry::{self, Registry};
use crate::release::release;
use crate::session::Session;
use crate::settings;

/// A program that asks again at once gets the answer of just now, so that it does not wait for dead workers in each call.
const AGAIN: Duration = Duration::from_secs(2);

struct Process {
    session: Option<Arc<Session>>,
    /// A thread connects, and the others wait for it.
    connects: bool,
    failed: Option<(Instant, HipError)>,
    /// Where in the list of workers the next search begins.
    next: usize,
    /// What stderr has been told, so that a program's thousand calls say it once.
    said: Vec<String>,
}

static PROCESS: Mutex<Process> =
    Mutex::new(Process { session: None, connects: false, failed: None, next: 0, said: Vec::new() });

/// Rings when a thread has connected, or has not.
static CONNECTED: Condvar = Condvar::new();

/// How often the process came from a fork. What a thread has from before belongs to the parent.
static FORKS: AtomicU32 = AtomicU32::new(0);

pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// The session with the worker. It begins here, and anew when a worker is lost while the program has nothing there.
///
/// # Errors
/// No worker can be had, or one is lost with what the program had there.
pub fn session() -> Outcome<Arc<Session>> {
    let mut process = lock(&PROCESS);
    while process.connects {
        process = CONNECTED.wait(process).unwrap_or_else(PoisonError::into_inner);
    }
    if let Some(session) = &process.session {
        if !session.connection.is_lost() {
            return Ok(Arc::clone(session));
        }
        if session.has_state() {
            let why = session.connection.why_lost().unwrap_or_default();
            process.say(&format!(
                "{why}. What the program had on its GPUs is gone, and each HIP call fails from now on: start the program anew"
            ));
            return Err(HipError::LOST);
        }
        process.session = None;
        process.next += 1;
    }
    match process.failed {
        Some((when, error)) if when.elapsed() < AGAIN => return Err(error),
        _ => process.failed = None,
    }
    watch_forks();
    process.connects = true;
    let first = process.next;
    // A fork takes the process's lock, and workers may take minutes to answer.
    drop(process);
    let connected = connect(first);
    let mut process = lock(&PROCESS);
    process.connects = false;
    CONNECTED.notify_all();
    match connected {
        Ok((number, session)) => {
            process.next = number;
            process.session = Some(Arc::clone(&session));
            Ok(session)
        }
        Err(error) => {
            process.failed = Some((Instant::now(), error));
            Err(error)
        }
    }
}

/// Whether the process has a worker now.
pub fn is_connected() -> bool {
    lock(&PROCESS).session.as_ref().is_some_and(|session| !session.connection.is_lost())
}

/// Says a sentence once on stderr.
pub fn say(sentence: &str) {
    lock(&PROCESS).say(sentence);
}

#[cfg(test)]
pub fn said() -> Vec<String> {
    lock(&PROCESS).said.clone()
}

/// Says what the program's fat binaries have that no remote GPU does.
pub fn say_what_is_not_supported() {
    for what in registry::unsupported() {
        say(&format!("{what} is not supported by a remote GPU"));
    }
}

/// Connects to a worker, beginning with this one of the list, and says which one it is.
fn connect(first: usize) -> Outcome<(usize, Arc<Session>)> {
    let settings = settings::read().map_err(|why| {
        say(&why);
        HipError::NO_DEVICE
    })?;
    let mut error = HipError::NO_DEVICE;
    for step in 0..settings.workers.len() {
        let number = (first + step) % settings.workers.len().max(1);
        let Some(worker) = settings.workers.get(number) else { continue };
        match connection::open(worker, settings.key.as_ref(), settings.memory) {
            Ok((connection, welcome)) => {
                say_what_is_not_supported();
                return Ok((number, Arc::new(Session::new(connection, welcome))));
            }
            Err(NoWorker::Unreachable(why)) => say(&why),
            Err(NoWorker::Hip(failure)) => {
                let name = errors::name(release(), failure.0).to_string_lossy();
                say(&format!("{worker} has no GPU for the program: its HIP library says {name}"));
                error = failure;
            }
        }
    }
    Err(error)
}

impl Process {
    fn say(&mut self, sentence: &str) {
        if !self.said.iter().any(|said| said == sentence) {
            // A stderr that is closed is no reason to fail.
            let _ = writeln!(std::io::stderr(), "rocworker: {sentence}");
            self.said.push(sentence.to_owned());
        }
    }
}

struct Held {
    process: MutexGuard<'static, Process>,
    _registry: MutexGuard<'static, Option<Registry>>,
    _host_memory: MutexGuard<'static, Ranges>,
}

thread_local! {
    /// What the forking thread holds, so that no other thread is within it when the child begins.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Has the C library call back around each fork, from the first connection on.
fn watch_forks() {
    static ONCE: Once = Once::new();
    // SAFETY: the three functions are of this library, which is never unloaded, and take nothing.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child));
    });
}

extern "C" fn before_fork() {
    let _ = HELD.try_with(|held| {
        if let Ok(mut held) = held.try_borrow_mut() {
            let process = lock(&PROCESS);
            *held = Some(Held { process, _registry: registry::hold(), _host_memory: host_memory::hold() });
        }
    });
}

extern "C" fn after_fork_in_parent() {
    let _ = HELD.try_with(|held| held.try_borrow_mut().map(|mut held| held.take()).is_ok());
}

extern "C" fn after_fork_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let _ = HELD.try_with(|held| {
        let Ok(mut held) = held.try_borrow_mut() else { return };
        let Some(Held { mut process, .. }) = held.take() else { return };
        process.failed = None;
        // The thread that connects is the parent's.
        process.connects = false;
        if let Some(session) = process.session.take() {
            // The worker must see the parent's end, which it does not while the child has the socket.
            if let Some(socket) = session.connection.socket() {
                // SAFETY: the descriptor is the connection's, which nothing of the child uses any more.
                unsafe { libc::close(socket) };
            }
            // A thread of the parent may have held a lock of it: nothing of it may be touched, nor dropped.
            std::mem::forget(session);
        }
    });
}
