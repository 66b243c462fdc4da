//! The configurations of what runs containers, and rocworker's own, without secrets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use config::KEYS as ROCWORKER;
use engines::containerd::CONFIG_KEYS as CONTAINERD;
use engines::{self, Format, Reported};
use host::unit::{FOLDERS as OF_UNITS, Unit, named};

use super::collect::Collector;
use super::redact::{CDI, POLICY, Redactor};

/// What of rocworker's own is taken, and the specs that engines read.
const FILES: [Reported; 8] = [
    Reported::folder("/etc/cdi", "json", Format::Json(CDI)),
    Reported::folder("/etc/cdi", "yaml", Format::Yaml(CDI)),
    Reported::folder("/run/cdi", "json", Format::Json(CDI)),
    Reported::folder("/run/cdi", "yaml", Format::Yaml(CDI)),
    Reported::folder("/etc/rocworker", "yaml", Format::Yaml(ROCWORKER)),
    Reported::folder("/etc/rocworker", "json", Format::Json(POLICY)),
    Reported::folder("/etc/rocworker", "toml", Format::Toml(CONTAINERD)),
    Reported::folder("/etc/rocworker", "env", Format::Env),
];

/// Takes the files, and counts for each in how many places something was removed.
pub(super) fn collect(collector: &mut Collector<'_>, redactor: &Redactor) -> BTreeMap<String, usize> {
    let mut files: Vec<(PathBuf, Format)> = Vec::new();
    for Reported { path, extension, format } in engines::ALL.iter().flat_map(|it| it.reported).chain(&FILES) {
        let path = Path::new(path);
        let found = extension.map_or_else(|| vec![path.to_owned()], |it| collector.configs(path, it));
        files.extend(found.into_iter().map(|path| (path, *format)));
    }
    for name in engines::ALL.iter().filter_map(|engine| engine.unit) {
        // Drop-ins can outlive their unit.
        let drop_ins = Path::new("/etc/systemd/system").join(format!("{name}.d"));
        files.extend(collector.configs(&drop_ins, "conf").into_iter().map(|path| (path, Format::Unit)));
        unit(collector, name, &mut files);
    }
    let mut removed = BTreeMap::new();
    for (path, format) in files {
        if collector.entries.contains_key(&path) {
            continue;
        }
        let Some(text) = collector.config(&path) else { continue };
        let redacted = redactor.configuration(format, &text);
        let places = redacted.matches("[removed").count();
        if places > 0 {
            removed.insert(path.display().to_string(), places);
        }
        collector.put_text(path, redacted);
    }
    removed
}

/// A unit with its drop-ins and environment files.
fn unit(collector: &mut Collector<'_>, name: &str, files: &mut Vec<(PathBuf, Format)>) {
    let unit = match Unit::read(collector.root, name, None) {
        Ok(Some(unit)) => unit,
        Ok(None) => return,
        Err(problem) => {
            let mut paths = OF_UNITS.iter().map(|folder| Path::new(folder).join(name));
            let path = paths.find(|path| collector.root.lstat(path).is_ok());
            return collector.leave_out(&path.unwrap_or_else(|| PathBuf::from(name)), problem);
        }
    };
    files.extend([unit.path].into_iter().chain(unit.drop_ins).map(|path| (path, Format::Unit)));
    for file in unit.environment_files {
        match named(collector.root, name, &file.path) {
            Some(paths) => files.extend(paths.into_iter().map(|path| (path, Format::Env))),
            None => collector.leave_out(
                &file.path,
                format!("{} names it with a specifier that rocworker does not know", file.named_by.display()),
            ),
        }
    }
}
