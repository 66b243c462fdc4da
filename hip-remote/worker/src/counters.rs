//! What a client has done: its process reports it to the worker's parent, which writes the metrics.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use hip_protocol::field::Field;

/// The most GPUs whose numbers are kept: eight cards in eight partitions.
pub const GPUS: usize = 64;

/// Counters of one client, or the sum of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    pub received: u64,
    pub sent: u64,
    /// By the GPUs' indexes.
    pub launches: [u64; GPUS],
    /// Bytes that are allocated now.
    pub allocated: [u64; GPUS],
}

impl Default for Counted {
    fn default() -> Self {
        Self { received: 0, sent: 0, launches: [0; GPUS], allocated: [0; GPUS] }
    }
}

impl Counted {
    /// Adds what another client has done.
    pub fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.sent += other.sent;
        let sums = self.launches.iter_mut().chain(&mut self.allocated);
        for (sum, value) in sums.zip(other.launches.iter().chain(&other.allocated)) {
            *sum += value;
        }
    }
}

/// What a client's process tells the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "a report lives for one read or write")]
pub enum Report {
    /// The client said who it is, and waits for the verdict.
    Hello,
    /// The client is served from here on.
    Begun,
    /// The process ends by itself from here on.
    Ended,
    Counted(Counted),
}

/// Each report has one length, so that a stream needs no marks between two.
const REPORT: usize = 8 * (3 + 2 * GPUS);

impl Report {
    /// # Errors
    /// The parent is gone.
    pub fn write(&self, mut to: impl Write) -> std::io::Result<()> {
        let (kind, counted) = match self {
            Self::Hello => (1_u64, Counted::default()),
            Self::Begun => (2, Counted::default()),
            Self::Ended => (3, Counted::default()),
            Self::Counted(counted) => (4, *counted),
        };
        let mut bytes = Vec::with_capacity(REPORT);
        [kind, counted.received, counted.sent].put(&mut bytes);
        counted.launches.iter().chain(&counted.allocated).for_each(|value| value.put(&mut bytes));
        to.write_all(&bytes)
    }

    /// # Errors
    /// The client's process has ended, or says what no process of this program says.
    pub fn read(mut from: impl Read) -> std::io::Result<Self> {
        let mut bytes = [0; REPORT];
        from.read_exact(&mut bytes)?;
        let mut bytes = bytes.as_slice();
        let mut take = || {
            let [kind, received, sent] = Field::take(&mut bytes)?;
            let mut counted = Counted { received, sent, ..Counted::default() };
            for value in counted.launches.iter_mut().chain(&mut counted.allocated) {
                *value = u64::take(&mut bytes)?;
            }
            match kind {
                1 => Some(Self::Hello),
                2 => Some(Self::Begun),
                3 => Some(Self::Ended),
                4 => Some(Self::Counted(counted)),
                _ => None,
            }
        };
        take().ok_or_else(|| std::io::ErrorKind::InvalidData.into())
    }
}

/// Counters that several threads add to.
#[derive(Debug)]
pub struct Counters {
    pub received: AtomicU64,
    pub sent: AtomicU64,
    /// By the client's devices.
    launches: [AtomicU64; GPUS],
}

impl Counters {
    pub fn new() -> Self {
        let launches = std::array::from_fn(|_| AtomicU64::new(0));
        Self { received: AtomicU64::new(0), sent: AtomicU64::new(0), launches }
    }

    /// How many kernels a device got.
    pub fn launches(&self, device: usize) -> u64 {
        self.launches.get(device).map_or(0, |launches| launches.load(Ordering::Relaxed))
    }

    pub fn launched(&self, device: i32) {
        if let Some(launches) = usize::try_from(device).ok().and_then(|device| self.launches.get(device)) {
            launches.fetch_add(1, Ordering::Relaxed);
        }
    }
}
