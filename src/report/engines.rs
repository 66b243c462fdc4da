//! The configurations of what runs containers, and ours, without their secrets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::collect::Collector;
use super::redact::Redactor;

const FILES: [&str; 5] = [
    "/etc/containerd/config.toml",
    "/etc/docker/daemon.json",
    "/etc/default/concourse",
    "/var/lib/concourse/containerd-gpu.toml",
    "/var/lib/concourse-worker/worker-config.env",
];

/// A folder, and what files of it.
const FOLDERS: [(&str, &[&str]); 7] = [
    ("/etc/containerd/conf.d", &["toml"]),
    ("/etc/cdi", &["json", "yaml"]),
    ("/run/cdi", &["json", "yaml"]),
    ("/etc/rocworker", &["yaml", "json", "toml", "env"]),
    ("/etc/systemd/system/concourse-worker.service.d", &["conf"]),
    ("/etc/systemd/system/containerd.service.d", &["conf"]),
    ("/etc/systemd/system/docker.service.d", &["conf"]),
];

/// Says of each file in how many places something was removed.
pub(super) fn collect(collector: &mut Collector<'_>, redactor: &Redactor) -> BTreeMap<String, usize> {
    let mut paths: Vec<PathBuf> = FILES.iter().map(PathBuf::from).collect();
    for (folder, extensions) in FOLDERS {
        paths.extend(collector.configs(Path::new(folder), extensions));
    }
    let mut redactions = BTreeMap::new();
    for path in paths {
        let Some(text) = collector.config(&path) else { continue };
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        let redacted = if is_json { redactor.json(&text) } else { redactor.text(&text) };
        if redacted.places > 0 {
            redactions.insert(path.display().to_string(), redacted.places);
        }
        collector.put_text(path, redacted.text);
    }
    redactions
}
