//! The process's worker: which one it is, and when another takes its place.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once};
use std::time::{Duration, Instant};

use crate::connection::{self, NoWorker, lock};
use crate::error::{HipError, Outcome};
use crate::registry;
use crate::session::Session;
use crate::settings;

/// A program that asks again at once gets the answer of just now, so that it does not wait for dead workers in each call.
const AGAIN: Duration = Duration::from_secs(2);

struct Process {
    session: Option<Arc<Session>>,
    failed: Option<(Instant, HipError)>,
    /// Where in the list of workers the next search begins.
    next: usize,
    /// What stderr has been told, so that a program's thousand calls say it once.
    said: Vec<String>,
}

static PROCESS: Mutex<Process> =
    Mutex::new(Process { session: None, failed: None, next: 0, said: Vec::new() });

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
    match process.connect() {
        Ok(session) => {
            process.session = Some(Arc::clone(&session));
            Ok(session)
        }
        Err(error) => {
            process.failed = Some((Instant::now(), error));
            Err(error)
        }
    }
}

/// Says a sentence once on stderr.
pub fn say(sentence: &str) {
    lock(&PROCESS).say(sentence);
}

impl Process {
    fn connect(&mut self) -> Outcome<Arc<Session>> {
        let settings = match settings::read() {
            Ok(settings) => settings,
            Err(why) => {
                self.say(&why);
                return Err(HipError::NO_DEVICE);
            }
        };
        let mut error = HipError::NO_DEVICE;
        let mut refusals = Vec::new();
        for step in 0..settings.workers.len() {
            let number = (self.next + step) % settings.workers.len().max(1);
            let Some(worker) = settings.workers.get(number) else { continue };
            match connection::open(worker, settings.key.as_ref(), settings.memory) {
                Ok((connection, welcome)) => {
                    self.next = number;
                    for what in registry::unsupported() {
                        self.say(&format!("{what} is not supported by a remote GPU"));
                    }
                    return Ok(Arc::new(Session::new(connection, welcome)));
                }
                Err(NoWorker::Unreachable(why)) => refusals.push(why),
                Err(NoWorker::Hip(failure)) => error = failure,
            }
        }
        for why in refusals {
            self.say(&why);
        }
        Err(error)
    }

    fn say(&mut self, sentence: &str) {
        if !self.said.iter().any(|said| said == sentence) {
            eprintln!("rocworker: {sentence}");
            self.said.push(sentence.to_owned());
        }
    }
}

thread_local! {
    /// What the forking thread holds, so that no other thread is within it when the child begins.
    static HELD: RefCell<Option<(MutexGuard<'static, Process>, registry::Held)>> = const { RefCell::new(None) };
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
            *held = Some((process, registry::hold()));
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
        let Some((mut process, _)) = held.take() else { return };
        process.failed = None;
        if let Some(session) = process.session.take() {
            // The worker must see the parent's end, which it does not while the child has the socket.
            // SAFETY: the descriptor is the connection's, which nothing of the child uses any more.
            unsafe { libc::close(session.connection.socket()) };
            // A thread of the parent may have held a lock of it: nothing of it may be touched, nor dropped.
            std::mem::forget(session);
        }
    });
}
