//! How many clients there may be at once, and how long one may take.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

/// Half of what systemd lets a service open.
const MOST: usize = 512;
/// From the first byte to the end of the first request's headers, TLS included.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// From one request to the next, the answer included. Prometheus' usual interval is at most one minute.
const NEXT_REQUEST: Duration = Duration::from_secs(120);
/// A client without a request for this long makes room for another.
const MAY_GO: Duration = Duration::from_secs(1);

/// All open connections.
#[derive(Default)]
pub(crate) struct Connections {
    open: Rc<RefCell<BTreeMap<u64, Rc<State>>>>,
    freed: Rc<Notify>,
    last: Cell<u64>,
}

/// One of them, until it is dropped.
pub(crate) struct Connection {
    number: u64,
    state: Rc<State>,
    open: Rc<RefCell<BTreeMap<u64, Rc<State>>>>,
    freed: Rc<Notify>,
}

struct State {
    ends: Cell<Instant>,
    /// When it was accepted or its last request was answered; `None` while one is.
    idle_since: Cell<Option<Instant>>,
    closed: Notify,
}

impl Connections {
    /// Waits for room. At the limit, the connection that would end first and has no request makes room.
    pub(crate) async fn room(&self) {
        while self.open.borrow().len() >= MOST {
            if let Some(state) = self.longest_idle() {
                state.closed.notify_one();
            }
            timeout(MAY_GO / 4, self.freed.notified()).await.ok();
        }
    }

    /// Of a client that was just accepted.
    pub(crate) fn add(&self) -> Connection {
        let now = Instant::now();
        let state = Rc::new(State {
            ends: Cell::new(now + FIRST_REQUEST),
            idle_since: Cell::new(Some(now)),
            closed: Notify::new(),
        });
        self.last.set(self.last.get() + 1);
        let number = self.last.get();
        self.open.borrow_mut().insert(number, state.clone());
        Connection { number, state, open: self.open.clone(), freed: self.freed.clone() }
    }

    fn longest_idle(&self) -> Option<Rc<State>> {
        let open = self.open.borrow();
        let may_go =
            |state: &&Rc<State>| state.idle_since.get().is_some_and(|since| since.elapsed() >= MAY_GO);
        open.values().filter(may_go).min_by_key(|state| state.ends.get()).cloned()
    }
}

impl Connection {
    /// The client has sent a request, and gets its answer until what is returned is dropped.
    pub(crate) fn request(&self) -> Busy<'_> {
        self.state.ends.set(Instant::now() + NEXT_REQUEST);
        self.state.idle_since.set(None);
        Busy(&self.state)
    }

    /// Ends when the connection has to.
    pub(crate) async fn over(&self) {
        loop {
            let ends = self.state.ends.get();
            tokio::select! {
                () = sleep_until(ends) => {}
                () = self.state.closed.notified() => return,
            }
            // A request has moved it.
            if self.state.ends.get() <= ends {
                return;
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.open.borrow_mut().remove(&self.number);
        self.freed.notify_one();
    }
}

pub(crate) struct Busy<'c>(&'c State);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.idle_since.set(Some(Instant::now()));
    }
}
