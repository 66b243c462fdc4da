//! What the daemon publishes for the exporter in [`PATH`].

mod changes;
pub(super) mod clients;
mod contents;
mod drifting;

use std::sync::Arc;
use std::time::Duration;

use inventory::published::PATH;
use reconcile::Resource;
use root::Root;

use super::publisher::{File, Publisher};
use changes::Changes;
use clients::Clients;

pub use drifting::Drifting;

use printable::shortened;

static FILE: File = File {
    path: PATH,
    every: Duration::from_secs(10),
    thread: "publisher",
    lack: "the exporter does not get leases, drift, changes, pods and GPU clients",
    is_own: |_| true,
};

/// Publishes while rocworker is set up, with the machine's drift.
pub fn publisher(root: Arc<Root>) -> std::io::Result<Publisher<Drifting>> {
    let (mut clients, mut changes) = (Clients::default(), Changes::default());
    Publisher::start(root, &FILE, move |root, drifting| {
        Some(contents::json(&contents::gather(root, drifting, &mut clients, &mut changes)))
    })
}

/// What a path of any length and content is called in the file, whose size is bounded.
fn short(path: &Resource) -> String {
    shortened(path.to_string(), 256)
}
