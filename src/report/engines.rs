//! The configurations of what runs containers, and rocworker's own, as far as they may be told.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::collect::Collector;
use super::redact::{Format, Redactor};
use crate::engines::concourse::UNIT;
use crate::engines::unit::{FOLDERS as OF_UNITS, Unit, named};

const FILES: [(&str, Format); 5] = [
    ("/etc/containerd/config.toml", Format::CONTAINERD),
    ("/etc/docker/daemon.json", Format::DOCKER),
    ("/etc/default/concourse", Format::ENV),
    ("/var/lib/concourse/containerd-gpu.toml", Format::CONTAINERD),
    ("/var/lib/concourse-worker/worker-config.env", Format::ENV),
];

/// A folder, and the files of it that end so.
const FOLDERS: [(&str, &str, Format); 12] = [
    ("/etc/containerd/conf.d", "toml", Format::CONTAINERD),
    ("/etc/cdi", "json", Format::CDI_JSON),
    ("/etc/cdi", "yaml", Format::CDI_YAML),
    ("/run/cdi", "json", Format::CDI_JSON),
    ("/run/cdi", "yaml", Format::CDI_YAML),
    ("/etc/rocworker", "yaml", Format::CONFIG),
    ("/etc/rocworker", "json", Format::POLICY),
    ("/etc/rocworker", "toml", Format::CONTAINERD),
    ("/etc/rocworker", "env", Format::ENV),
    ("/etc/systemd/system/concourse-worker.service.d", "conf", Format::UNIT),
    ("/etc/systemd/system/containerd.service.d", "conf", Format::UNIT),
    ("/etc/systemd/system/docker.service.d", "conf", Format::UNIT),
];

/// Units that are taken with their drop-ins and the environment files that they name.
const UNITS: [&str; 3] = [UNIT, "containerd.service", "docker.service"];

/// Says of each file in how many places something was removed.
pub(super) fn collect(collector: &mut Collector<'_>, redactor: &Redactor) -> BTreeMap<String, usize> {
    let mut files: Vec<(PathBuf, Format)> =
        FILES.iter().map(|(path, format)| (PathBuf::from(path), *format)).collect();
    for (folder, extension, format) in FOLDERS {
        let found = collector.configs(Path::new(folder), &[extension]);
        files.extend(found.into_iter().map(|path| (path, format)));
    }
    for name in UNITS {
        files.extend(unit(collector, name));
    }
    let (mut redactions, mut seen) = (BTreeMap::new(), BTreeSet::new());
    for (path, format) in files {
        if !seen.insert(path.clone()) {
            continue;
        }
        let Some(text) = collector.config(&path) else { continue };
        let redacted = redactor.configuration(format, &text);
        if redacted.places > 0 {
            redactions.insert(path.display().to_string(), redacted.places);
        }
        collector.put_text(path, redacted.text);
    }
    redactions
}

fn unit(collector: &mut Collector<'_>, name: &str) -> Vec<(PathBuf, Format)> {
    let unit = match Unit::read(collector.root, name, None) {
        Ok(Some(unit)) => unit,
        Ok(None) => return Vec::new(),
        Err(problem) => {
            let paths = OF_UNITS.iter().map(|folder| Path::new(folder).join(name));
            let path = paths.into_iter().find(|path| collector.root.lstat(path).is_ok());
            collector.leave_out(&path.unwrap_or_else(|| PathBuf::from(name)), problem);
            return Vec::new();
        }
    };
    let mut files = vec![(unit.path, Format::UNIT)];
    files.extend(unit.drop_ins.into_iter().map(|path| (path, Format::UNIT)));
    for file in unit.environment_files {
        match named(collector.root, name, &file.path) {
            Some(paths) => files.extend(paths.into_iter().map(|path| (path, Format::ENV))),
            None => collector.leave_out(
                &file.path,
                format!("{} names it, and which file that is is not known here", file.named_by.display()),
            ),
        }
    }
    files
}
