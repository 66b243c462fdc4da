//! The one connection of a process to its worker.
//!
//! Calls leave through the [`outbox`], in the order in which threads put them there. What the worker sends is read by whichever
//! thread waits ([`inbox`]), so that a call that waits costs one write and one read, both in its own thread.

mod hello;
mod inbox;
mod outbox;
mod receive;
mod rows;
#[cfg(test)]
pub(crate) mod stand_in;
mod target;
mod transfer;
mod watch;

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use hip_protocol::calls::{Call, DeviceSync, EventQuery, EventSync, Launch, StreamQuery, StreamSync};
use hip_protocol::envelope::{DEFERRED, ERROR, NO_REPLY};
use hip_protocol::message;
use hip_transport::Shutdown;

use crate::error::{HipError, Outcome};
use inbox::Inbox;
use outbox::{Outbox, Post};

pub use hello::{NoWorker, open};
pub use inbox::Desk;
pub use rows::Rows;

pub struct Connection {
    outbox: Mutex<Outbox>,
    /// The outbox has calls, and nobody who waits will flush them.
    filled: Condvar,
    post: Mutex<Post>,
    inbox: Mutex<Inbox>,
    next_id: AtomicU32,
    /// How many launches were sent, and how many of them some thread has waited for.
    launches: AtomicU64,
    launches_waited_for: AtomicU64,
    /// Nothing more can be sent or received.
    lost: AtomicBool,
    /// The process wants nothing more of it.
    closed: AtomicBool,
    shutdown: Shutdown,
    /// The thread of [`watch`].
    watch: Mutex<Option<Thread>>,
    peer: String,
}

/// A reply's fields and its variable bytes.
pub type Answer<C> = (<C as Call>::Reply, Vec<u8>);

impl Connection {
    /// Makes a call and waits for its reply.
    ///
    /// # Errors
    /// The call failed, an earlier one-way call of this thread failed, or the connection is lost.
    pub fn call<C: Call>(&self, desk: &Desk, call: &C, variable: &[u8]) -> Outcome<Answer<C>> {
        let id = self.expect(desk)?;
        let launches = self.launches.load(Ordering::Relaxed);
        self.append(call, id, 0, desk, variable, false);
        self.flush(&[], &[]);
        let answer = self.answer::<C>(desk, id);
        if [DeviceSync::OP, StreamSync::OP, StreamQuery::OP, EventSync::OP, EventQuery::OP].contains(&C::OP) {
            self.waited_for(launches, &answer);
        }
        answer
    }

    /// Makes a call whose failure comes with a later reply.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send<C: Call>(&self, desk: &Desk, call: &C, variable: &[u8]) -> Outcome {
        if self.is_lost() {
            return Err(HipError::LOST);
        }
        if C::OP == Launch::OP {
            self.launches.fetch_add(1, Ordering::Relaxed);
        }
        if self.append(call, self.id(), NO_REPLY, desk, variable, true) {
            self.flush(&[], &[]);
        }
        Ok(())
    }

    /// Whether kernels were launched for which no thread has waited since.
    pub fn has_launches_under_way(&self) -> bool {
        self.launches.load(Ordering::Relaxed) > self.launches_waited_for.load(Ordering::Relaxed)
    }

    /// Takes it that so many launches have ended, where a call that looks for their end went well.
    fn waited_for<T>(&self, launches: u64, answer: &Outcome<T>) {
        if answer.is_ok() {
            self.launches_waited_for.fetch_max(launches, Ordering::Relaxed);
        }
    }

    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// The socket, for a forked child to close; none where the program has closed it.
    pub fn socket(&self) -> Option<RawFd> {
        self.shutdown.descriptor()
    }

    /// Why the connection is lost.
    pub fn why_lost(&self) -> Option<String> {
        let inbox = lock(&self.inbox);
        inbox.lost.clone().map(|why| format!("The connection to {} is lost: {why}", self.peer))
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.shutdown.now();
        self.wake_threads();
    }

    /// Lets the threads see that the connection ends.
    fn wake_threads(&self) {
        drop(lock(&self.outbox));
        self.filled.notify_all();
        if let Some(watch) = &*lock(&self.watch) {
            watch.unpark();
        }
    }

    fn id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes the lane wait for a reply before its request can leave.
    fn expect(&self, desk: &Desk) -> Outcome<u32> {
        if self.is_lost() {
            return Err(HipError::LOST);
        }
        let id = self.id();
        lock(&self.inbox).expect(desk, id);
        Ok(id)
    }

    fn answer<C: Call>(&self, desk: &Desk, id: u32) -> Outcome<Answer<C>> {
        let reply = self.wait(desk, |inbox| inbox.take_reply(desk, id))?;
        let envelope = reply.envelope;
        let fields = message::fields::<C::Reply>(C::OP, &reply.payload);
        if envelope.has(DEFERRED) {
            // A pointer or a handle would be lost with the error: it waits for the thread's next call that has neither.
            return match fields {
                Ok((fields, variable)) if size_of::<C::Reply>() > 0 => {
                    desk.defer(HipError(envelope.status));
                    Ok((fields, variable.to_vec()))
                }
                _ => Err(HipError(envelope.status)),
            };
        }
        if envelope.has(ERROR) {
            return Err(HipError(envelope.status));
        }
        let Ok((fields, variable)) = fields else {
            self.shutdown.now();
            return Err(HipError::LOST);
        };
        match desk.deferred() {
            Some(earlier) if size_of::<C::Reply>() == 0 => Err(earlier),
            _ => Ok((fields, variable.to_vec())),
        }
    }
}

/// The call that panicked has failed; the program's other calls go on with what it left.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
