//! Streams: a thread and a queue each, whose tasks are counted, so that whoever waits waits for a count.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

/// A place in a stream's queue. It is done when the stream has done so many tasks.
#[derive(Clone)]
pub struct Ticket {
    pub stream: Arc<Stream>,
    number: u64,
}

impl Ticket {
    pub fn is_done(&self) -> bool {
        self.stream.done.load(Ordering::Acquire) >= self.number
    }

    pub fn wait(&self) {
        let mut state = self.stream.state();
        while !self.is_done() {
            state = self.stream.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

struct Task {
    /// What must be done before.
    after: Vec<Ticket>,
    run: Box<dyn FnOnce() + Send>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Task>,
    submitted: u64,
    ends: bool,
    has_thread: bool,
}

pub struct Stream {
    pub device: usize,
    /// Whether the null stream and this one wait for each other.
    pub blocking: bool,
    pub flags: u32,
    pub priority: i32,
    state: Mutex<State>,
    changed: Condvar,
    done: AtomicU64,
}

impl Stream {
    pub fn new(device: usize, flags: u32, priority: i32) -> Arc<Self> {
        Arc::new(Self {
            device,
            // hipStreamNonBlocking is 1.
            blocking: flags & 1 == 0,
            flags,
            priority,
            state: Mutex::default(),
            changed: Condvar::new(),
            done: AtomicU64::new(0),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Everything that has been submitted so far.
    pub fn last(self: &Arc<Self>) -> Ticket {
        Ticket { stream: self.clone(), number: self.state().submitted }
    }

    /// Submits a task. The caller holds the device's order, so that `after` cannot name what comes later.
    pub fn submit(self: &Arc<Self>, after: Vec<Ticket>, run: impl FnOnce() + Send + 'static) -> Ticket {
        let mut state = self.state();
        state.queue.push_back(Task { after, run: Box::new(run) });
        state.submitted += 1;
        if !state.has_thread {
            state.has_thread = true;
            let stream = self.clone();
            thread::spawn(move || stream.work());
        }
        self.changed.notify_all();
        Ticket { stream: self.clone(), number: state.submitted }
    }

    /// The stream ends when its queue is empty.
    pub fn end(&self) {
        self.state().ends = true;
        self.changed.notify_all();
    }

    fn work(&self) {
        loop {
            let mut state = self.state();
            let task = loop {
                if let Some(task) = state.queue.pop_front() {
                    break task;
                }
                if state.ends {
                    state.has_thread = false;
                    return;
                }
                state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
            };
            drop(state);
            for ticket in &task.after {
                ticket.wait();
            }
            (task.run)();
            // Under the lock, so that nobody looks at the count and then misses the wake-up.
            let state = self.state();
            self.done.fetch_add(1, Ordering::Release);
            drop(state);
            self.changed.notify_all();
        }
    }
}
