//! What the daemon publishes about the GPUs' health in [`PATH`].

mod changes;
mod leftover;
mod rules;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use allocation::document::Document as _;
use host::timestamp::Timestamp;
use inventory::health::{GpuHealth, Health, PATH, State};
use root::Root;
use telemetry::daemon_file;
use telemetry::health::{is_quarantine_enforced, why_not_quarantined};

use super::publisher::{self, File, Publisher};
use crate::health::{Judgement, Observer, boot_id};
use changes::Change;
use leftover::Leftovers;
use rules::InForce;

static FILE: File = File {
    path: PATH,
    every: Duration::from_secs(10),
    thread: "health",
    lack: "the wrapper and the exporter do not get the GPUs' health",
    is_own: |_| true,
};

/// Publishes while rocworker is set up. A daemon that starts publishes first what keeps GPUs from containers, as the
/// last one has left it: to judge takes seconds while a GPU hangs.
pub fn publisher(root: Arc<Root>) -> std::io::Result<Publisher<()>> {
    let mut monitor = None;
    Publisher::start(root, &FILE, move |root, ()| {
        let monitor = monitor.get_or_insert_with(|| {
            let monitor = Monitor::begin(root);
            if let Some(text) = monitor.unjudged(now()).and_then(|health| health.to_json().ok()) {
                // Where this cannot be written, the judgement after it says so.
                publisher::write(root, &FILE, &text).ok();
            }
            monitor
        });
        // Every part of it can be written as JSON.
        Some(monitor.judge(root).to_json().unwrap_or_default())
    })
}

/// Seconds since 1970.
fn now() -> u64 {
    Timestamp::of(SystemTime::now()).seconds()
}

#[derive(Debug)]
struct Monitor {
    observer: Observer,
    rules: InForce,
    leftovers: Leftovers,
    /// The last judgement: this daemon's, or what the one before it has left in the file in this boot.
    last: Option<Health>,
    boot_id: Option<String>,
}

impl Monitor {
    fn begin(root: &Root) -> Self {
        let last = daemon_file::last(root).unwrap_or_else(|problem| {
            tracing::warn!("{problem}: which GPUs were quarantined is not known");
            None
        });
        let boot_id = boot_id(root);
        let last = last.filter(|last: &Health| !last.is_of_another_boot(boot_id.as_deref()));
        Self {
            observer: Observer::new(root),
            rules: InForce::default(),
            leftovers: Leftovers::new(root),
            last,
            boot_id,
        }
    }

    /// Before this daemon's first judgement: the lasting parts of the last one, quarantines and what is left on a GPU.
    /// `None` where there is neither.
    fn unjudged(&self, now: u64) -> Option<Health> {
        let last = self.last.as_ref()?;
        let unjudged = |gpu: &GpuHealth| GpuHealth {
            state: State::Unknown,
            score: None,
            hang: None,
            deductions: Vec::new(),
            unknown: vec!["It is not judged yet: rocworker's daemon has just started.".to_owned()],
            ..gpu.clone()
        };
        let gpus: Vec<GpuHealth> = last.gpus.iter().map(unjudged).collect();
        let lasts = gpus.iter().any(|gpu| gpu.quarantine.is_some() || gpu.leftover.is_some());
        let boot_id = self.boot_id.clone();
        lasts.then(|| Health { written_at: now, boot_id, gpus, unknown: Vec::new(), ..last.clone() })
    }

    fn judge(&mut self, root: &Root) -> &Health {
        self.rules.read_again(root);
        let rules = &self.rules.rules;
        let Judgement { mut health, cards } = self.observer.judge(root, rules, self.last.as_ref(), now());
        health.boot_id.clone_from(&self.boot_id);
        health.unknown.extend(self.rules.problem.clone());
        self.leftovers.note(cards, rules.leftover_bytes, &mut health);
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
