//! The worker's counts, as a file for rocworker-exporter.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use allocation::document::Document as _;
use inventory::hip_worker::{HipGpu, HipWorker};

use crate::counters::{Counted, GPUS};

/// How often the file is written without a change: one that is old does not count.
const REFRESH: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Metrics {
    file: PathBuf,
    /// What clients did that are gone.
    gone: Counted,
    pub served: u64,
    pub refused: u64,
    pub crashed: u64,
    /// The GPUs that clients have used, up to the last one.
    gpus: usize,
    written: Option<(Instant, HipWorker)>,
    has_failed: bool,
}

impl Metrics {
    pub fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            gone: Counted::default(),
            served: 0,
            refused: 0,
            crashed: 0,
            gpus: 0,
            written: None,
            has_failed: false,
        }
    }

    /// Adds what a client did that is gone. What it had allocated is free.
    pub fn gone(&mut self, counted: &Counted) {
        self.gone.add(&Counted { allocated: [0; GPUS], ..*counted });
    }

    /// Writes the file, if anything in it has changed or it grows old.
    pub fn write<'c>(&mut self, clients: impl Iterator<Item = &'c Counted>) {
        let mut all = self.gone;
        let mut count = 0;
        for client in clients {
            count += 1;
            all.add(client);
        }
        let gpus = all.launches.iter().zip(&all.allocated);
        let gpus = gpus.map(|(launches, bytes)| HipGpu { launches: *launches, allocated_bytes: *bytes });
        let mut gpus: Vec<HipGpu> = gpus.collect();
        let used = gpus.iter().rposition(|gpu| *gpu != HipGpu::default()).map_or(0, |last| last + 1);
        self.gpus = self.gpus.max(used);
        gpus.truncate(self.gpus);
        let now = HipWorker {
            schema_version: HipWorker::SCHEMA_VERSION,
            written_at: 0,
            clients: count,
            served: self.served,
            refused: self.refused,
            crashed: self.crashed,
            received_bytes: all.received,
            sent_bytes: all.sent,
            gpus,
        };
        if self.written.as_ref().is_some_and(|(at, last)| *last == now && at.elapsed() < REFRESH) {
            return;
        }
        if let Err(error) = write(&self.file, &now)
            && !std::mem::replace(&mut self.has_failed, true)
        {
            log!("the exporter gets no metrics: {} cannot be written: {error}", self.file.display());
        }
        self.written = Some((Instant::now(), now));
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        // A worker that has ended counts nothing. Another one's file comes again.
        let _ = fs::remove_file(&self.file);
    }
}

fn write(file: &Path, counted: &HipWorker) -> Result<(), String> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let text = HipWorker { written_at: since.as_secs(), ..counted.clone() }
        .to_json()
        .map_err(|error| error.to_string())?;
    // A reader sees the old file or the new one, and may be any user.
    let part = file.with_extension("part");
    fs::create_dir_all(file.parent().unwrap_or(file))
        .and_then(|()| fs::write(&part, &text))
        .and_then(|()| fs::set_permissions(&part, Permissions::from_mode(0o644)))
        .and_then(|()| fs::rename(&part, file))
        .map_err(|error| error.to_string())
}
