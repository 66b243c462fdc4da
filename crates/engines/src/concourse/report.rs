//! What a report takes of a Concourse worker's configuration.

use crate::containerd::CONFIG_KEYS;
use crate::{Command, Format, Reported};

pub(super) const REPORTED: &[Reported] = &[
    Reported::file(super::DEFAULTS, Format::Env),
    Reported::file("/var/lib/concourse/containerd-gpu.toml", Format::Toml(CONFIG_KEYS)),
    Reported::file("/var/lib/concourse-worker/worker-config.env", Format::Env),
];

pub(super) const COMMAND: Command =
    ("concourse", OPTIONS, &["worker", "web", "quickstart", "land-worker", "retire-worker"]);
const OPTIONS: &[&str] =
    &["work-dir", "runtime", "tag", "containerd-config", "containerd-bin", "baggageclaim-driver"];
