//! The configurations of what runs containers, and rocworker's own, as far as they may be told.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::collect::Collector;
use super::redact::{CDI, ROCWORKER, Redactor};
use crate::engines::containerd::CONFIG_KEYS as CONTAINERD;
use crate::engines::unit::{FOLDERS as OF_UNITS, Unit, named};
use crate::engines::{self, Format, Reported};

/// What of rocworker's own is taken, and the specs that engines read.
const FILES: [Reported; 8] = [
    Reported::folder("/etc/cdi", "json", Format::Json(&CDI)),
    Reported::folder("/etc/cdi", "yaml", Format::Yaml(&CDI)),
    Reported::folder("/run/cdi", "json", Format::Json(&CDI)),
    Reported::folder("/run/cdi", "yaml", Format::Yaml(&CDI)),
    Reported::folder("/etc/rocworker", "yaml", Format::Yaml(&ROCWORKER)),
    Reported::folder("/etc/rocworker", "json", Format::Json(&ROCWORKER)),
    Reported::folder("/etc/rocworker", "toml", Format::Toml(&CONTAINERD)),
    Reported::folder("/etc/rocworker", "env", Format::Env),
];

/// Says of each file in how many places something was removed.
pub(super) fn collect(collector: &mut Collector<'_>, redactor: &Redactor) -> BTreeMap<String, usize> {
    let mut files: Vec<(PathBuf, Format)> = Vec::new();
    for Reported { path, extension, format } in engines::ALL.iter().flat_map(|it| it.reported).chain(&FILES) {
        let path = Path::new(path);
        let found = extension.map_or_else(|| vec![path.to_owned()], |it| collector.configs(path, &[it]));
        files.extend(found.into_iter().map(|path| (path, *format)));
    }
    // A unit may be gone, and its drop-ins there still.
    let units = || engines::ALL.iter().filter_map(|engine| engine.unit);
    for name in units() {
        let found = collector.configs(&Path::new("/etc/systemd/system").join(format!("{name}.d")), &["conf"]);
        files.extend(found.into_iter().map(|path| (path, Format::Unit)));
    }
    for name in units() {
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
    let mut files = vec![(unit.path, Format::Unit)];
    files.extend(unit.drop_ins.into_iter().map(|path| (path, Format::Unit)));
    for file in unit.environment_files {
        match named(collector.root, name, &file.path) {
            Some(paths) => files.extend(paths.into_iter().map(|path| (path, Format::Env))),
            None => collector.leave_out(
                &file.path,
                format!("{} names it, and which file that is is not known here", file.named_by.display()),
            ),
        }
    }
    files
}
