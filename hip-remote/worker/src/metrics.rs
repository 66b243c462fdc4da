//! The worker's metrics, as a file for node_exporter's textfile collector.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::counters::{Counted, GPUS};

#[derive(Debug)]
pub struct Metrics {
    file: Option<PathBuf>,
    /// What clients did that are gone.
    gone: Counted,
    pub accepted: u64,
    pub refused: u64,
    pub crashed: u64,
    last: String,
}

impl Metrics {
    pub fn new(file: Option<&Path>) -> Self {
        let file = file.map(Path::to_owned);
        Self { file, gone: Counted::default(), accepted: 0, refused: 0, crashed: 0, last: String::new() }
    }

    /// Adds what a client did that is gone. What it had allocated is free.
    pub fn gone(&mut self, counted: &Counted) {
        self.gone.add(&Counted { allocated: [0; GPUS], ..*counted });
    }

    /// Writes the file, if anything in it has changed.
    pub fn write<'c>(&mut self, clients: impl Iterator<Item = &'c Counted>) {
        let Some(file) = &self.file else { return };
        let mut all = self.gone;
        let mut count = 0;
        for client in clients {
            count += 1;
            all.add(client);
        }
        let text = self.text(count, &all);
        if text == self.last {
            return;
        }
        // A reader sees the old file or the new one, and may be any user.
        let part = file.with_extension("part");
        let written = fs::write(&part, &text)
            .and_then(|()| fs::set_permissions(&part, Permissions::from_mode(0o644)))
            .and_then(|()| fs::rename(&part, file));
        if let Err(error) = written {
            log!("the metrics {} cannot be written: {error}", file.display());
        }
        self.last = text;
    }

    fn text(&self, clients: u64, all: &Counted) -> String {
        let mut text = String::new();
        for (name, kind, help, value) in [
            ("clients", "gauge", "Clients that are served now.", clients),
            ("clients_total", "counter", "Clients that were served.", self.accepted),
            (
                "refused_total",
                "counter",
                "Connections that were refused, or ended before they were served.",
                self.refused,
            ),
            ("crashed_total", "counter", "Clients' processes that ended by a signal.", self.crashed),
            ("received_bytes_total", "counter", "Bytes that came from clients.", all.received),
            ("sent_bytes_total", "counter", "Bytes that went to clients.", all.sent),
        ] {
            head(&mut text, name, kind, help);
            let _ = writeln!(text, "rocworker_hip_{name} {value}");
        }
        for (name, kind, help, values) in [
            ("launches_total", "counter", "Kernels that clients launched.", &all.launches),
            ("allocated_bytes", "gauge", "Memory that clients have allocated.", &all.allocated),
        ] {
            head(&mut text, name, kind, help);
            for (gpu, value) in values.iter().enumerate().filter(|(gpu, value)| *gpu == 0 || **value > 0) {
                let _ = writeln!(text, "rocworker_hip_{name}{{gpu=\"{gpu}\"}} {value}");
            }
        }
        text
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = write!(text, "# HELP rocworker_hip_{name} {help}\n# TYPE rocworker_hip_{name} {kind}\n");
}
