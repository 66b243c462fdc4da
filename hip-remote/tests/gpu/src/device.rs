//! The devices: each one's streams, their order, and the fault that ends what it does.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};
use std::time::Duration;

use crate::dispatch::Launch;
use crate::fault::Fault;
use crate::memory::memory;
use crate::settings::SETTINGS;
use crate::status::{ILLEGAL_ADDRESS, LAUNCH_FAILURE, Status};
use crate::stream::{Stream, Ticket};

pub struct Device {
    pub null: Arc<Stream>,
    /// Every stream but the null stream. Whoever submits a task holds it: submissions have one order.
    streams: Mutex<Vec<Weak<Stream>>>,
    /// The first fault since the last reset: all later calls give it (HIP's sticky errors).
    fault: AtomicI32,
}

static DEVICES: LazyLock<Vec<Device>> = LazyLock::new(|| {
    (0..SETTINGS.devices.len())
        .map(|device| Device {
            null: Stream::new(device, 0, 0),
            streams: Mutex::default(),
            fault: AtomicI32::new(0),
        })
        .collect()
});

static LAUNCHES: AtomicU64 = AtomicU64::new(0);

pub fn device(number: usize) -> Option<&'static Device> {
    DEVICES.get(number)
}

pub fn count() -> usize {
    DEVICES.len()
}

impl Device {
    fn order(&self) -> MutexGuard<'_, Vec<Weak<Stream>>> {
        self.streams.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn add(&self, stream: &Arc<Stream>) {
        let mut streams = self.order();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
    }

    /// The sticky fault, if there is one.
    pub fn healthy(&self) -> Result<(), Status> {
        match self.fault.load(Ordering::Acquire) {
            0 => Ok(()),
            status => Err(status),
        }
    }

    pub fn recover(&self) {
        self.fault.store(0, Ordering::Release);
    }

    /// Submits a task to a stream of this device, behind what HIP says of the null stream. After a fault it does not run,
    /// unless it is one that says when.
    pub fn submit(
        &'static self,
        stream: &Arc<Stream>,
        extra: Option<Ticket>,
        always: bool,
        run: impl FnOnce() -> Result<(), Fault> + Send + 'static,
    ) -> Ticket {
        let streams = self.order();
        let mut after: Vec<Ticket> = extra.into_iter().collect();
        if Arc::ptr_eq(stream, &self.null) {
            after.extend(
                streams
                    .iter()
                    .filter_map(Weak::upgrade)
                    .filter(|other| other.blocking)
                    .map(|other| other.last()),
            );
        } else if stream.blocking {
            after.push(self.null.last());
        }
        after.retain(|ticket| !ticket.is_done());
        stream.submit(after, move || {
            if !always && self.healthy().is_err() {
                return;
            }
            if let Err(fault) = run() {
                let status = match fault {
                    Fault::Memory { .. } => ILLEGAL_ADDRESS,
                    Fault::Local { .. } => LAUNCH_FAILURE,
                    Fault::Unknown(sentence) => {
                        eprintln!("test GPU: {sentence}");
                        LAUNCH_FAILURE
                    }
                };
                let _ = self.fault.compare_exchange(0, status, Ordering::AcqRel, Ordering::Acquire);
            }
        })
    }

    /// Waits for what precedes a call of the null stream that its own thread carries out.
    pub fn drain_null(&self) -> Result<(), Status> {
        let tickets: Vec<Ticket> = {
            let streams = self.order();
            let blocking = streams.iter().filter_map(Weak::upgrade).filter(|stream| stream.blocking);
            blocking.map(|stream| stream.last()).chain([self.null.last()]).collect()
        };
        tickets.iter().for_each(Ticket::wait);
        self.healthy()
    }

    /// Waits for everything that has been submitted.
    pub fn drain(&self) -> Result<(), Status> {
        let tickets: Vec<Ticket> = {
            let streams = self.order();
            streams
                .iter()
                .filter_map(Weak::upgrade)
                .map(|stream| stream.last())
                .chain([self.null.last()])
                .collect()
        };
        tickets.iter().for_each(Ticket::wait);
        self.healthy()
    }

    pub fn launch(&'static self, stream: &Arc<Stream>, launch: Launch) -> Ticket {
        self.submit(stream, None, false, move || {
            let number = LAUNCHES.fetch_add(1, Ordering::Relaxed) + 1;
            if SETTINGS.crash_after == number {
                eprintln!("test GPU: TEST_GPU_CRASH_AFTER ends the process at launch {number}");
                std::process::abort();
            }
            if SETTINGS.slow > 0 {
                std::thread::sleep(Duration::from_millis(SETTINGS.slow));
            }
            let map = memory().map();
            launch.run(&map)
        })
    }
}
