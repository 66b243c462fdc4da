//! What the daemon publishes for the exporter in [`PATH`].

pub(super) mod clients;
mod contents;

use std::sync::Arc;

use root::Root;
use telemetry::published::{Drift, PATH};

use super::publisher::{File, Publisher};
use clients::Clients;

static FILE: File = File {
    path: PATH,
    thread: "publisher",
    lack: "the exporter does not get leases, drift, pods and GPU clients",
};

/// Publishes while rocworker is set up, with the machine's drift.
pub fn publisher(root: Arc<Root>) -> std::io::Result<Publisher<Drift>> {
    let mut clients = Clients::default();
    Publisher::start(root, &FILE, move |root, drift| {
        contents::json(&contents::gather(root, drift, &mut clients))
    })
}
