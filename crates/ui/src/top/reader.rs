//! Reads the machine again and again, in a thread of its own.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use inventory::snapshot::Snapshot;
use root::Place;
use root::patient::{self, DEADLINE, PATIENCE, Patient};
use serde::{Deserialize, Serialize};
use telemetry::exporter::Exporter;

/// What one scrape of the machine gives.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Scrape {
    pub snapshot: Snapshot,
    /// What the machine calls itself; `None` where nothing says so.
    pub host: Option<String>,
    /// How many reads have not come back.
    pub stuck: usize,
}

/// How often the machine is read; `None`: not now.
pub type Pace = Option<Duration>;

/// Reads a machine once: what was read, or why nothing was this time. An error: no further read can succeed.
pub type Read = Box<dyn FnMut() -> io::Result<Result<Scrape, String>> + Send>;

/// Reads a machine. It outlives files that hang, and keeps what a suspended GPU was called.
#[derive(Debug)]
pub struct Reader {
    exporter: Exporter,
    patient: Patient<(Exporter, Scrape)>,
}

impl Reader {
    /// Reads the machine whose Root is at `place`.
    #[must_use]
    pub fn new(place: Place) -> Self {
        Self { exporter: Exporter::default(), patient: Patient::new(place, PATIENCE, DEADLINE) }
    }

    /// Reads the machine once.
    ///
    /// # Errors
    /// [`Patient::run`] fails.
    pub fn read(&mut self) -> Result<Scrape, patient::Error> {
        // A clock before 1970 is as good as one that was never set.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        // A thread that is left behind has a copy: what it finds later changes nothing.
        let mut exporter = self.exporter.clone();
        let (exporter, mut reading) = self.patient.run(move |root| {
            root.ask_again();
            let snapshot = exporter.scrape(root, now);
            (exporter, Scrape { snapshot, host: host::hostname(root), stuck: root.stuck() })
        })?;
        self.exporter = exporter;
        reading.stuck += self.patient.stuck();
        Ok(reading)
    }

    /// Reads the machine as a [`Read`] does.
    ///
    /// # Errors
    /// The thread that reads has ended.
    pub fn read_again(&mut self) -> io::Result<Result<Scrape, String>> {
        match self.read() {
            Err(error @ patient::Error::Ended) => Err(io::Error::other(error)),
            read => Ok(read.map_err(|error| error.to_string())),
        }
    }
}

/// Calls `on_due` for each reading that is due, until it answers false or no thread can send a pace any more. `paces`: how
/// often the machine is read from now on.
pub(super) fn repeat(mut pace: Pace, paces: &Receiver<Pace>, mut on_due: impl FnMut() -> bool) {
    let mut last = None::<Instant>;
    loop {
        let wait = match (pace, last) {
            (None, _) => None,
            (Some(_), None) => Some(Duration::ZERO),
            (Some(interval), Some(last)) => Some(interval.saturating_sub(last.elapsed())),
        };
        let next = match wait {
            Some(wait) => paces.recv_timeout(wait),
            None => paces.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(next) => pace = next,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                last = Some(Instant::now());
                if !on_due() {
                    return;
                }
            }
        }
    }
}
