//! Reads that hang. The read of a file of a driver can wait for ever, in a state that no signal ends.
//!
//! So a thread of its own does the reading, and the caller watches it. A thread that stays in one read for too long is left
//! behind, and another begins anew without that path ([`Stuck`]). When the read comes back, the thread ends. So each
//! path that hangs costs one thread, and later runs cost none.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Place, Root, Stuck, Watch};

/// A file of a driver answers within milliseconds.
pub const PATIENCE: Duration = Duration::from_millis(500);
/// Prometheus waits 10 s unless its configuration says otherwise.
pub const DEADLINE: Duration = Duration::from_secs(8);

/// The most threads that may hang in a read. With more, no run begins until a read has come back.
const MOST_LEFT: usize = 128;

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Root(#[from] crate::Error),
    #[error("reading took longer than {} s; the read that was waiting then: {}", .deadline.as_secs(), path.display())]
    Late { deadline: Duration, path: PathBuf },
    #[error("{MOST_LEFT} reads do not come back, the last of {}: look for the driver's messages: journalctl -k", path.display())]
    TooMany { path: PathBuf },
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
    #[error("the thread that reads has ended: this is a defect, report it")]
    Ended,
}

/// Runs functions that read a Root, and outlives reads that hang.
#[derive(Debug)]
pub struct Patient<T> {
    root: Place,
    /// How long one read may take.
    patience: Duration,
    /// How long one run may take.
    deadline: Duration,
    left: Arc<Left>,
    last_left: PathBuf,
    worker: Option<Worker<T>>,
}

type Job<T> = Box<dyn FnOnce(&Root) -> T + Send>;

#[derive(Debug)]
struct Worker<T> {
    jobs: Sender<Job<T>>,
    results: Receiver<Result<T, crate::Error>>,
    reads: Arc<Reads>,
}

/// The state that all workers share.
#[derive(Debug, Default)]
struct Left {
    stuck: Mutex<Stuck>,
    /// The threads that were left behind.
    threads: AtomicUsize,
}

/// The reads of one worker.
#[derive(Debug)]
struct Reads {
    left: Arc<Left>,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    /// The path of the current read, or of the last one.
    path: PathBuf,
    since: Option<Instant>,
    /// Whether the worker is abandoned: no caller waits for it any more.
    left: bool,
}

impl<T: Send + 'static> Patient<T> {
    /// `root`: [`Root::place`], or the path of a folder.
    #[must_use]
    pub fn new(root: impl Into<Place>, patience: Duration, deadline: Duration) -> Self {
        let root = root.into();
        let last_left = root.path().to_owned();
        Self { root, patience, deadline, left: Arc::default(), last_left, worker: None }
    }

    /// The reads that have not come back.
    #[must_use]
    pub fn stuck(&self) -> usize {
        self.left.threads.load(Ordering::SeqCst)
    }

    /// The paths that no run reads for now, and the folders of devices that hang.
    #[must_use]
    pub fn stuck_paths(&self) -> Vec<PathBuf> {
        self.left.stuck().paths()
    }

    /// Runs `job` and returns its result. Where the job meets a path that hangs, it runs again from its
    /// beginning, and that path then gives [`crate::Error::NoAnswer`].
    ///
    /// # Errors
    /// When the Root cannot be opened, or a run lasts longer than its deadline.
    pub fn run(&mut self, job: impl FnOnce(&Root) -> T + Clone + Send + 'static) -> Result<T, Error> {
        let end = Instant::now() + self.deadline;
        self.left.stuck().forget();
        // A device that hangs has many files: the first one that does makes the next ones likely.
        let shortest = self.patience / 10;
        let mut patience = self.patience;
        loop {
            let worker = match self.worker.take() {
                Some(worker) => worker,
                None => self.start()?,
            };
            // A worker that has ended says why in its result.
            worker.jobs.send(Box::new(job.clone())).ok();
            match worker.wait(patience, end) {
                Waited::Done(result) => {
                    // A worker whose Root could not be opened has ended.
                    self.worker = result.is_ok().then_some(worker);
                    return Ok(result?);
                }
                Waited::Left => self.last_left = worker.reads.now().path.clone(),
                Waited::Late => {
                    self.last_left = worker.reads.now().path.clone();
                    return Err(Error::Late { deadline: self.deadline, path: self.last_left.clone() });
                }
                Waited::Ended => return Err(Error::Ended),
            }
            patience = (patience / 2).max(shortest);
        }
    }

    fn start(&self) -> Result<Worker<T>, Error> {
        if self.stuck() >= MOST_LEFT {
            return Err(Error::TooMany { path: self.last_left.clone() });
        }
        let reads = Arc::new(Reads {
            left: self.left.clone(),
            now: Mutex::new(Now { path: self.root.path().to_owned(), ..Now::default() }),
        });
        let (jobs, next) = mpsc::channel::<Job<T>>();
        let (answer, results) = mpsc::channel();
        let (place, watch) = (self.root.clone(), reads.clone());
        thread::Builder::new().name("reader".to_owned()).spawn(move || {
            match place.open() {
                Ok(root) => {
                    let root = root.watched_by(watch.clone());
                    while let Ok(job) = next.recv()
                        && answer.send(Ok(job(&root))).is_ok()
                    {}
                }
                Err(error) => drop(answer.send(Err(error))),
            }
            if watch.now().left {
                watch.left.threads.fetch_sub(1, Ordering::SeqCst);
            }
        })?;
        Ok(Worker { jobs, results, reads })
    }
}

enum Waited<T> {
    Done(Result<T, crate::Error>),
    /// One read took too long, and its worker is abandoned.
    Left,
    /// All reads together took longer than the deadline.
    Late,
    Ended,
}

impl<T> Worker<T> {
    fn wait(&self, patience: Duration, end: Instant) -> Waited<T> {
        let mut pause = patience;
        loop {
            let rest = end.saturating_duration_since(Instant::now());
            match self.results.recv_timeout(pause.min(rest)) {
                Ok(result) => return Waited::Done(result),
                Err(RecvTimeoutError::Disconnected) => return Waited::Ended,
                Err(RecvTimeoutError::Timeout) => {}
            }
            match self.reads.leave_after(patience) {
                None => return Waited::Left,
                Some(rest) => pause = rest,
            }
            if Instant::now() >= end {
                self.reads.leave();
                return Waited::Late;
            }
        }
    }
}

impl Reads {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves the worker behind if its current read has lasted this long. Otherwise: how long to wait before it may have.
    fn leave_after(&self, patience: Duration) -> Option<Duration> {
        let mut now = self.now();
        let Some(since) = now.since else { return Some(patience) };
        match patience.checked_sub(since.elapsed()) {
            Some(rest) if !rest.is_zero() => Some(rest),
            _ => {
                self.left.stuck().hangs(&now.path, since);
                self.leave_now(&mut now);
                None
            }
        }
    }

    /// Leaves the worker behind. Its next read fails.
    fn leave(&self) {
        self.leave_now(&mut self.now());
    }

    fn leave_now(&self, now: &mut Now) {
        now.left = true;
        self.left.threads.fetch_add(1, Ordering::SeqCst);
    }
}

impl Watch for Reads {
    fn begin(&self, path: &Path) -> Result<(), Duration> {
        let mut now = self.now();
        if now.left {
            return Err(Duration::ZERO);
        }
        if let Some(waited) = self.left.stuck().refuses(path) {
            return Err(waited);
        }
        let buffer = now.path.as_mut_os_string();
        buffer.clear();
        buffer.push(path);
        now.since = Some(Instant::now());
        Ok(())
    }

    fn end(&self) {
        let mut now = self.now();
        now.since = None;
        let mut stuck = self.left.stuck();
        // A run begins anew with each file that hangs: what answered before the first one answers again.
        if !stuck.is_empty() {
            stuck.came_back(&now.path, now.left);
        }
    }
}

impl Left {
    fn stuck(&self) -> MutexGuard<'_, Stuck> {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
