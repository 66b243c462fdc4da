//! The threads of a connection: one sends calls for which nobody waits, one sees whether the worker lives.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use hip_protocol::calls::Ping;

use super::inbox::Desk;
use super::{Connection, lock};
use crate::signals;

const TICK: Duration = Duration::from_millis(500);

/// So often the worker is told that the client lives.
const EACH: Duration = Duration::from_secs(2);

/// A worker that has said nothing for so long is dead.
pub(super) const DEAD: Duration = Duration::from_secs(8);

const STACK: usize = 256 * 1024;

pub(super) fn start(connection: &Arc<Connection>) -> io::Result<()> {
    signals::without(|| {
        let [pump, watch] = [Arc::clone(connection), Arc::clone(connection)];
        let pump = thread::Builder::new()
            .name("rocworker-pump".into())
            .stack_size(STACK)
            .spawn(move || pump.pump())?;
        let watching = thread::Builder::new()
            .name("rocworker-watch".into())
            .stack_size(STACK)
            .spawn(move || watch.watch());
        match watching {
            Ok(watch) => {
                *lock(&connection.watch) = Some(watch.thread().clone());
                Ok(())
            }
            Err(why) => {
                connection.close();
                let _ = pump.join();
                Err(why)
            }
        }
    })
}

impl Connection {
    fn watch(&self) {
        let mut last = Instant::now();
        let mut said = last;
        while !self.closed.load(Ordering::Acquire) && !self.is_lost() {
            thread::park_timeout(TICK);
            if self.socket().is_none() && !self.closed.load(Ordering::Acquire) {
                return self.lose(&mut lock(&self.inbox), "the program closed its descriptor".to_owned());
            }
            self.read_what_nobody_reads();
            let now = Instant::now();
            let mut inbox = lock(&self.inbox);
            if now - last > EACH {
                // The process was stopped, and heard nothing for that reason.
                inbox.heard = now;
            }
            last = now;
            // A thread that reads finds the silence itself.
            if inbox.has_reader() && now.saturating_duration_since(inbox.heard) > DEAD {
                self.lose(&mut inbox, format!("it sent nothing for {} s", DEAD.as_secs()));
            }
            drop(inbox);
            if now - said > EACH {
                said = now;
                // Whoever flushes may wait for a worker that is dead, which only this thread sees: it never does.
                self.append(&Ping {}, self.id(), 0, &Desk::nobody(), &[], true);
            }
        }
    }

    /// Credit and the connection's end come also while no thread waits.
    fn read_what_nobody_reads(&self) {
        loop {
            let Some(mut reader) = lock(&self.inbox).take_reader() else { return };
            let received = match reader.poll(Duration::ZERO) {
                Ok(true) => self.receive(&mut reader).map(|()| true),
                Ok(false) => Ok(false),
                Err(why) => Err(why.to_string()),
            };
            let mut inbox = lock(&self.inbox);
            match received {
                Ok(more) => {
                    inbox.put_back(reader);
                    if !more || inbox.is_waited_for() {
                        return;
                    }
                }
                Err(why) => return self.lose(&mut inbox, why),
            }
        }
    }
}
