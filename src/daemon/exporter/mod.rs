//! What the daemon publishes for the exporter in [`PATH`], every ten seconds.
//!
//! A thread of its own: the kernel may hold up who reads a GPU client's fdinfo while a GPU hangs, and neither a look nor
//! an answer to `status` waits for that.

mod clients;
mod contents;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use root::{Attributes, Identity, Root};
use telemetry::published::{Drift, PATH};

use super::{RUN, claim};
use clients::Clients;

/// Twice in the time for which it counts, and once more.
const EVERY: Duration = Duration::from_secs(10);

/// How long the daemon's end waits for a write that goes on.
const END: Duration = Duration::from_millis(300);

/// Of the thread, which reads files one after the other: what it does not touch of it takes no memory.
const STACK: usize = 512 << 10;

/// The way to the thread that publishes.
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// `None` while the machine is not set up, or not known to be: then nothing is published.
    drift: Option<Drift>,
    is_new: bool,
    is_writing: bool,
    is_over: bool,
    /// Which file was written last.
    written: Option<Identity>,
}

impl Publisher {
    pub fn start(root: Arc<Root>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State { is_new: true, ..State::default() }),
            ..Shared::default()
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("publisher".to_owned()).stack_size(STACK);
        thread.spawn(move || run(&root, &of_thread))?;
        Ok(Self { shared })
    }

    /// Has this published, at once where it is new.
    pub fn set(&self, drift: Option<Drift>) {
        let mut state = self.shared.lock();
        if state.drift != drift {
            (state.drift, state.is_new) = (drift, true);
            self.shared.changed.notify_all();
        }
    }

    /// Removes what was published, unless it is another daemon's by now.
    pub fn leave(self, root: &Root) {
        let mut state = self.shared.lock();
        state.is_over = true;
        self.shared.changed.notify_all();
        let waited = self.shared.changed.wait_timeout_while(state, END, |state| state.is_writing);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.written.is_some() && state.written == root.identity(PATH).ok() {
            // One that is left is old in half a minute.
            root.remove(PATH).ok();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run(root: &Root, shared: &Shared) {
    let mut is_hindered = false;
    let mut clients = Clients::default();
    loop {
        let state = shared.lock();
        let is_idle = |state: &mut State| !state.is_new && !state.is_over;
        let mut state = if state.drift.is_some() {
            let waited = shared.changed.wait_timeout_while(state, EVERY, is_idle);
            waited.unwrap_or_else(PoisonError::into_inner).0
        } else {
            shared.changed.wait_while(state, is_idle).unwrap_or_else(PoisonError::into_inner)
        };
        state.is_new = false;
        let drift = state.drift;
        drop(state);
        let text = drift.map(|drift| contents::json(&contents::gather(root, drift, &mut clients)));

        let mut state = shared.lock();
        if state.is_over {
            return;
        }
        state.is_writing = true;
        drop(state);
        let written = text.map(|text| write(root, &text));
        if written.is_none() {
            // One that is left is old in half a minute.
            root.remove(PATH).ok();
        }
        let mut state = shared.lock();
        state.is_writing = false;
        state.written = root.identity(PATH).ok();
        shared.changed.notify_all();
        drop(state);
        if let Some(written) = written {
            say(root, &mut is_hindered, written.err());
        }
    }
}

fn write(root: &Root, text: &str) -> Result<(), root::Error> {
    claim::believe(root)?;
    // A folder that was removed is made again by whoever holds the lock in it.
    if root.exists(RUN) {
        root.write(PATH, text.as_bytes(), Attributes { mode: 0o644, owner: None })?;
    }
    Ok(())
}

/// Says once what hinders, and once that nothing does any more.
fn say(root: &Root, is_hindered: &mut bool, problem: Option<root::Error>) {
    let was_hindered = std::mem::replace(is_hindered, problem.is_some());
    match problem {
        Some(problem) if !was_hindered => {
            tracing::warn!("{problem}: the exporter does not get leases, drift, pods and GPU clients");
        }
        None if was_hindered => tracing::info!("{} is written again", root.shown(PATH).display()),
        _ => {}
    }
}
