//! Frees memory, modules and streams in a thread for each device: the library waits for the device to do so.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::locked::locked;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Debug)]
pub struct Releases {
    devices: Vec<Queue>,
}

/// The releases of one device, in order.
#[derive(Debug)]
struct Queue {
    jobs: Sender<Job>,
    under_way: Arc<(Mutex<usize>, Condvar)>,
}

impl Queue {
    fn new() -> Result<Self, String> {
        let (jobs, receiver) = channel::<Job>();
        let under_way = Arc::new((Mutex::new(0_usize), Condvar::new()));
        let own = Arc::clone(&under_way);
        std::thread::Builder::new()
            .name("releases".to_owned())
            .spawn(move || {
                for job in receiver {
                    job();
                    *locked(&own.0) -= 1;
                    own.1.notify_all();
                }
            })
            .map_err(|error| format!("the worker's machine has no thread for a client: {error}"))?;
        Ok(Self { jobs, under_way })
    }
}

impl Releases {
    /// # Errors
    /// The machine has no more threads.
    pub fn new(devices: i32) -> Result<Self, String> {
        Ok(Self { devices: (0..devices).map(|_| Queue::new()).collect::<Result<_, _>>()? })
    }

    fn of(&self, device: i32) -> Option<&Queue> {
        self.devices.get(usize::try_from(device).ok()?)
    }

    /// Runs a release after all earlier ones of its device.
    pub fn push(&self, device: i32, job: impl FnOnce() + Send + 'static) {
        // What is to be released is on a device that there is.
        let Some(queue) = self.of(device) else { return };
        *locked(&queue.under_way.0) += 1;
        if queue.jobs.send(Box::new(job)).is_err() {
            *locked(&queue.under_way.0) -= 1;
        }
    }

    pub fn is_idle(&self, device: i32) -> bool {
        self.of(device).is_none_or(|queue| *locked(&queue.under_way.0) == 0)
    }

    /// Waits until everything of a device is released that was to be.
    pub fn wait(&self, device: i32) {
        let Some(queue) = self.of(device) else { return };
        let under_way = locked(&queue.under_way.0);
        let waited = queue.under_way.1.wait_while(under_way, |count| *count > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
