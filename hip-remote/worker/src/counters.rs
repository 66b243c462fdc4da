//! What a client has done: its process reports it to the worker's parent, which writes the metrics.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use hip_protocol::field::Field;

/// The most devices whose numbers are kept.
pub const DEVICES: usize = 16;

/// Counters of one client, or the sum of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub received: u64,
    pub sent: u64,
    pub launches: [u64; DEVICES],
    /// Bytes that are allocated now.
    pub allocated: [u64; DEVICES],
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
pub enum Report {
    /// The client said who it is, and waits for the verdict.
    Hello,
    /// The process ends by itself from here on.
    Ended,
    Counted(Counted),
}

/// Each report has one length, so that a stream needs no marks between two.
const REPORT: usize = 8 * (3 + 2 * DEVICES);

impl Report {
    /// # Errors
    /// The parent is gone.
    pub fn write(&self, mut to: impl Write) -> std::io::Result<()> {
        let (kind, counted) = match self {
            Self::Hello => (1_u64, Counted::default()),
            Self::Ended => (2, Counted::default()),
            Self::Counted(counted) => (3, *counted),
        };
        let mut bytes = Vec::with_capacity(REPORT);
        [kind, counted.received, counted.sent].put(&mut bytes);
        counted.launches.put(&mut bytes);
        counted.allocated.put(&mut bytes);
        to.write_all(&bytes)
    }

    /// # Errors
    /// The client's process has ended, or says what no process of this program says.
    pub fn read(mut from: impl Read) -> std::io::Result<Self> {
        let mut bytes = [0; REPORT];
        from.read_exact(&mut bytes)?;
        let mut bytes = bytes.as_slice();
        let mut take = || {
            let kind = u64::take(&mut bytes)?;
            let (received, sent) = (u64::take(&mut bytes)?, u64::take(&mut bytes)?);
            let (launches, allocated) = (Field::take(&mut bytes)?, Field::take(&mut bytes)?);
            match kind {
                1 => Some(Self::Hello),
                2 => Some(Self::Ended),
                3 => Some(Self::Counted(Counted { received, sent, launches, allocated })),
                _ => None,
            }
        };
        take().ok_or_else(|| std::io::ErrorKind::InvalidData.into())
    }
}

/// Counters that several threads add to.
#[derive(Debug, Default)]
pub struct Counters {
    pub received: AtomicU64,
    pub sent: AtomicU64,
    pub launches: [AtomicU64; DEVICES],
}

impl Counters {
    pub fn launched(&self, device: i32) {
        if let Some(launches) = usize::try_from(device).ok().and_then(|device| self.launches.get(device)) {
            launches.fetch_add(1, Ordering::Relaxed);
        }
    }
}
