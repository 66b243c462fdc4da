//! What the worker keeps of one thread of the client.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};

use crate::hip::Status;
use crate::locked::locked;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Debug, Default)]
pub struct Lane {
    pub number: u16,
    device: AtomicI32,
    /// The first failure of a one-way call that no reply has told; 0: none.
    deferred: AtomicI32,
    /// Calls that wait, for the lane's own thread.
    jobs: Mutex<Option<SyncSender<Job>>>,
}

impl Lane {
    pub fn new(number: u16) -> Self {
        Self { number, ..Self::default() }
    }

    pub fn device(&self) -> i32 {
        self.device.load(Ordering::Relaxed)
    }

    pub fn set_device(&self, device: i32) {
        self.device.store(device, Ordering::Relaxed);
    }

    /// Keeps the failure of a one-way call for the next reply. The first one counts, as with `hipGetLastError`.
    pub fn defer(&self, status: Status) {
        let _ = self.deferred.compare_exchange(0, status, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub fn take_deferred(&self) -> Option<Status> {
        Some(self.deferred.swap(0, Ordering::Relaxed)).filter(|status| *status != 0)
    }

    /// Runs a call that waits in the lane's own thread.
    ///
    /// # Errors
    /// The sentence that ends the connection: the lane waits already, or the machine has no more threads.
    pub fn run(self: &Arc<Self>, job: Job) -> Result<(), String> {
        let mut jobs = locked(&self.jobs);
        let sender = match &mut *jobs {
            Some(sender) => sender,
            none => {
                // The client's thread waits for each reply: one more job is there when it is told before its worker rests.
                let (sender, receiver) = sync_channel::<Job>(1);
                std::thread::Builder::new()
                    .name(format!("lane {}", self.number))
                    .spawn(move || receiver.into_iter().for_each(|job| job()))
                    .map_err(|error| {
                        format!("the worker's machine has no thread for another wait: {error}")
                    })?;
                none.insert(sender)
            }
        };
        match sender.try_send(job) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(format!(
                "the lane {} sent a further call that waits before the reply to its last one",
                self.number
            )),
            Err(TrySendError::Disconnected(_)) => {
                Err(format!("the lane {} failed in the worker", self.number))
            }
        }
    }
}
