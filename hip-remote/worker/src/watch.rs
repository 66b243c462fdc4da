//! Watches over a client's process from a thread of its own, because its reader may stand in a call of the HIP library.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};

use crate::counters::{Counted, Report};
use crate::session::Session;

/// The parent got a signal to end or was killed: its way to this process closes either way.
pub const ENDS: &str = "the worker ends: connect to another one, or again when it is back";

/// How long the reader may take to end the process by itself. A client's memory is free within a second of its death.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the client hears that the worker lives: a call of the library may wait before the reply to its Ping.
const BEAT: Duration = Duration::from_millis(1900);
/// How often the watch looks and reports.
const TICK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Begins to watch. `connection` is the client's; `session` comes when the HIP library is open. Version 1 has no beats.
///
/// # Errors
/// The machine has no more threads.
pub fn begin(
    session: &Arc<OnceLock<Arc<Session>>>,
    control: UnixStream,
    connection: OwnedFd,
    longest_wait: Option<Duration>,
    beats: bool,
) -> Result<(), String> {
    let session = Arc::clone(session);
    std::thread::Builder::new()
        .name("watch".to_owned())
        .spawn(move || {
            watch(&session, &control, &connection, longest_wait, beats);
            let _ = Report::Ended.write(&control);
            end_soon();
        })
        .map(drop)
        .map_err(|error| format!("the worker's machine has no thread for a client: {error}"))
}

/// Ends this process from a thread of its own, as [`end_soon`] does.
pub fn end_in_any_case() {
    // Without a thread the parent ends the process.
    let _ = std::thread::Builder::new().spawn(end_soon);
}

/// Kills this process, if it has not ended by itself until then.
fn end_soon() {
    std::thread::sleep(PATIENCE);
    let _ = kill_process(getpid(), Signal::KILL);
}

fn watch(
    session: &OnceLock<Arc<Session>>,
    mut control: &UnixStream,
    connection: &OwnedFd,
    longest_wait: Option<Duration>,
    beats: bool,
) {
    let mut last = Counted::default();
    let mut beat = Instant::now();
    loop {
        let mut watched = [PollFd::new(control, PollFlags::IN), PollFd::new(connection, PollFlags::RDHUP)];
        if poll(&mut watched, Some(&TICK)).is_err() {
            continue;
        }
        let [parent, client] = watched.map(|one| !one.revents().is_empty());
        if client {
            return;
        }
        let session = session.get();
        if parent {
            let mut rest = [0; 16];
            let _ = control.read(&mut rest);
            if let Some(session) = session {
                session.close(ENDS);
            }
            return;
        }
        let Some(session) = session else { continue };
        if let Some(longest) = longest_wait.filter(|longest| session.longest_wait() > *longest) {
            let sentence = format!(
                "a call has waited for the GPU for more than {} s, which is the longest that this worker allows \
                 (--longest-wait)",
                longest.as_secs()
            );
            log!("a client is ended: {sentence}");
            session.close(&sentence);
            return;
        }
        if beats && beat.elapsed() > BEAT {
            beat = Instant::now();
            // A client that takes nothing must not keep this thread, too.
            let mut writable = [PollFd::new(connection, PollFlags::OUT)];
            if poll(&mut writable, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0) {
                session.beat();
            }
        }
        let counted = session.counted();
        if counted != last && Report::Counted(counted).write(control).is_ok() {
            last = counted;
        }
    }
}
