//! What the daemon publishes about the GPUs' health in [`PATH`].

mod changes;
mod leftover;
mod rules;

use std::sync::Arc;
use std::time::SystemTime;

use allocation::document::Document as _;
use allocation::health::{Health, PATH};
use root::Root;
use telemetry::daemon_file;
use telemetry::health::{is_quarantine_enforced, why_not_quarantined};

use super::publisher::{File, Publisher};
use crate::health::{Judgement, Observer};
use crate::timestamp::Timestamp;
use changes::Change;
use leftover::Leftovers;
use rules::InForce;

static FILE: File =
    File { path: PATH, thread: "health", lack: "the wrapper and the exporter do not get the GPUs' health" };

/// Publishes while rocworker is set up.
pub fn publisher(root: Arc<Root>) -> std::io::Result<Publisher<()>> {
    let mut monitor = None;
    Publisher::start(root, &FILE, move |root, ()| {
        let monitor = monitor.get_or_insert_with(|| Monitor::begin(root));
        // Every part of it can be written as JSON.
        monitor.judge(root).to_json().unwrap_or_default()
    })
}

#[derive(Debug)]
struct Monitor {
    observer: Observer,
    rules: InForce,
    leftovers: Leftovers,
    /// The last judgement: this daemon's, or what the one before it has left in the file.
    last: Option<Health>,
}

impl Monitor {
    fn begin(root: &Root) -> Self {
        let last = daemon_file::last(root).unwrap_or_else(|problem| {
            tracing::warn!("{problem}: which GPUs were quarantined is not known");
            None
        });
        Self {
            observer: Observer::new(root),
            rules: InForce::default(),
            leftovers: Leftovers::new(root),
            last,
        }
    }

    fn judge(&mut self, root: &Root) -> &Health {
        self.rules.read_again(root);
        let now = Timestamp::of(SystemTime::now()).seconds();
        let rules = &self.rules.rules;
        let Judgement { mut health, memory } = self.observer.judge(root, rules, self.last.as_ref(), now);
        health.unknown.extend(self.rules.problem.clone());
        self.leftovers.note(memory, rules.leftover_bytes, &mut health);
        let lacks = why_not_quarantined(is_quarantine_enforced(root));
        for change in changes::between(self.last.as_ref(), &health, lacks) {
            match change {
                Change::Worse(text) => tracing::warn!("{text}"),
                Change::Other(text) => tracing::info!("{text}"),
            }
        }
        self.last.insert(health)
    }
}
