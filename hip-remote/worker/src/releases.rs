//! Frees memory, modules and streams in a thread of its own: the library waits for the device to do so.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::locked::locked;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Debug)]
pub struct Releases {
    jobs: Sender<Job>,
    under_way: Arc<(Mutex<usize>, Condvar)>,
}

impl Releases {
    /// # Errors
    /// The machine has no more threads.
    pub fn new() -> Result<Self, String> {
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

    /// Runs a release after all earlier ones.
    pub fn push(&self, job: impl FnOnce() + Send + 'static) {
        *locked(&self.under_way.0) += 1;
        if self.jobs.send(Box::new(job)).is_err() {
            *locked(&self.under_way.0) -= 1;
        }
    }

    pub fn is_idle(&self) -> bool {
        *locked(&self.under_way.0) == 0
    }

    /// Waits until everything is released that was to be.
    pub fn wait(&self) {
        let under_way = locked(&self.under_way.0);
        drop(
            self.under_way
                .1
                .wait_while(under_way, |count| *count > 0)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }
}
