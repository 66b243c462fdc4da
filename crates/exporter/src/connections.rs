//! Limits how many clients there may be at once, and how long each may take.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use crate::web_config::one_client;

/// Half of what systemd lets a service open.
const MOST: usize = 512;
/// The time from the first byte to the end of the first request's headers, TLS included.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// The time from one request to the next, the answer included. Prometheus' usual interval is at most one
/// minute.
const NEXT_REQUEST: Duration = Duration::from_secs(120);
/// A client without a request for this long makes room for one whose address has no fewer connections.
const MAY_GO: Duration = Duration::from_secs(1);
/// How long clients wait for room before they are refused. Clients behind them wait too.
const PATIENCE: Duration = Duration::from_secs(5);

/// The open connections of all clients.
#[derive(Default)]
pub(crate) struct Connections {
    open: Rc<RefCell<BTreeMap<u64, Rc<State>>>>,
    freed: Rc<Notify>,
    last: Cell<u64>,
    /// When a client first waited for room, while at least half of all connections stay open.
    full_since: Cell<Option<Instant>>,
}

/// An open connection, until this is dropped.
pub(crate) struct Connection {
    number: u64,
    state: Rc<State>,
    open: Rc<RefCell<BTreeMap<u64, Rc<State>>>>,
    freed: Rc<Notify>,
}

struct State {
    client: IpAddr,
    ends: Cell<Instant>,
    /// When the connection was accepted or its last request answered; `None` during a request.
    idle_since: Cell<Option<Instant>>,
    closed: Notify,
}

impl Connections {
    /// The connection of a client that was just accepted, as soon as there is room. `None` where its address has as
    /// many as any other, and there was no room for long.
    pub(crate) async fn admit(&self, client: IpAddr) -> Option<Connection> {
        let client = one_client(client);
        if self.count() < MOST / 2 {
            self.full_since.set(None);
        }
        while self.count() >= MOST && !self.make_room(client) {
            let since = self.full_since.get().unwrap_or_else(Instant::now);
            self.full_since.set(Some(since));
            if since.elapsed() >= PATIENCE {
                return None;
            }
            timeout(MAY_GO / 4, self.freed.notified()).await.ok();
        }
        Some(self.add(client))
    }

    fn count(&self) -> usize {
        self.open.borrow().len()
    }

    fn add(&self, client: IpAddr) -> Connection {
        let now = Instant::now();
        let state = Rc::new(State {
            client,
            ends: Cell::new(now + FIRST_REQUEST),
            idle_since: Cell::new(Some(now)),
            closed: Notify::new(),
        });
        self.last.set(self.last.get() + 1);
        let number = self.last.get();
        self.open.borrow_mut().insert(number, state.clone());
        Connection { number, state, open: self.open.clone(), freed: self.freed.clone() }
    }

    /// Closes a connection of the address that has most: the one that has had no request for longest, else the oldest.
    /// Where the newcomer's address has as many, it closes only one that may go.
    fn make_room(&self, newcomer: IpAddr) -> bool {
        let mut open = self.open.borrow_mut();
        let mut counts = BTreeMap::<IpAddr, usize>::new();
        for state in open.values() {
            *counts.entry(state.client).or_default() += 1;
        }
        let most = counts.values().copied().max().unwrap_or_default();
        let has_fewer = counts.get(&newcomer).copied().unwrap_or_default() + 1 < most;
        let may_go = |state: &State| {
            let is_idle = state.idle_since.get().is_some_and(|since| since.elapsed() >= MAY_GO);
            counts.get(&state.client) == Some(&most) && (has_fewer || is_idle)
        };
        let victims = open.iter().filter(|(_, state)| may_go(state));
        let victim = victims.min_by_key(|(_, state)| {
            let idle_since = state.idle_since.get();
            (idle_since.is_none(), idle_since)
        });
        let Some(number) = victim.map(|(number, _)| *number) else { return false };
        if let Some(state) = open.remove(&number) {
            state.closed.notify_one();
        }
        true
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

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn room_is_made_at_the_expense_of_the_address_with_most_connections() {
        let connections = Connections::default();
        let kept = connections.add(address(1));
        let many: Vec<_> = (1..MOST).map(|_| connections.add(address(2))).collect();
        let of = |last| connections.open.borrow().values().filter(|it| it.client == address(last)).count();
        assert!(!connections.make_room(address(2)), "all of them are new");
        assert_eq!((of(1), of(2)), (1, MOST - 1));
        assert!(connections.make_room(address(1)));
        let is_open = |connection: &Connection| connections.open.borrow().contains_key(&connection.number);
        assert!(!is_open(&many[0]), "of idle ones the oldest goes");
        let busy: Vec<_> = many[1..].iter().map(Connection::request).collect();
        assert!(!connections.make_room(address(2)), "all of them are busy");
        assert!(connections.make_room(address(3)));
        assert!(!is_open(&many[1]) && is_open(&many[2]) && is_open(&kept));
        assert_eq!((of(1), of(2)), (1, MOST - 3));
        drop(busy);
    }
}
