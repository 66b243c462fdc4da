//! `report`: a bug report that is a test. One archive whose folder is a Root: what `detect` said on the machine
//! it says again on the folder, on any machine.
//!
//! It takes of sysfs what the reader of GPUs read, and otherwise what allow lists name. It leaves out secrets and serial
//! numbers, and lists in the capture's record what it left out. docs/doctor.md says what stays in.

mod archive;
mod collect;
mod engines;
mod host;
mod messages;
mod programs;
mod redact;
mod save;
mod sysfs;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use inventory::health::{self, Health};
use root::{CAPTURE_FILE, Recording, Root};
use serde::Serialize;
use serde_json::{Value, json};
use telemetry::daemon_file;

pub use collect::LeftOut;
pub use save::new_file;

use crate::detection::Detection;
use crate::doctor;
use crate::run::Own;
use ::host::facts::Facts;
use ::host::hostname;
use ::host::timestamp::Timestamp;
use collect::{Collector, Entry};
use config::Config;
use reconcile::command::Programs;
use redact::Redactor;

/// A report, packed.
#[derive(Debug)]
pub struct Report {
    /// The archive: tar, compressed by gzip.
    pub bytes: Vec<u8>,
    pub entries: usize,
    /// What is there and not in it, or not whole.
    pub left_out: Vec<LeftOut>,
    /// File to number of places where a secret, or the machine's name, was removed.
    pub removed: BTreeMap<String, usize>,
}

/// Takes a report of the machine beneath `root`. `config`: the configuration, or what is wrong with it, which is itself
/// worth a report. `programs`: `None` beneath another Root than `/`.
///
/// # Errors
/// Only when the archive cannot be packed, or the Root not opened again; the report lists what cannot be read.
pub fn take(
    root: &Root,
    config: Result<&Config, String>,
    programs: Option<&Programs>,
    moment: Timestamp,
) -> io::Result<Report> {
    let redactor = Redactor::new(root);
    let facts = Facts::read(root);
    let mut collector = Collector::new(root);
    sysfs::collect(&mut collector, &facts.inventory).map_err(io::Error::other)?;
    host::collect(&mut collector);
    let answers = [
        ("/versions.json", json(&redactor, &programs::versions(root, programs, &redactor))?),
        ("/detect.json", json(&redactor, &Detection::new(&facts))?),
        (
            "/doctor.json",
            match config {
                Ok(config) => {
                    let mut diagnosis = doctor::examine(
                        root,
                        config,
                        &facts,
                        programs,
                        Own::find().beside.as_deref(),
                        moment,
                    );
                    for check in &mut diagnosis.checks {
                        check.evidence = redactor.evidence(&check.evidence);
                    }
                    json(&redactor, &diagnosis)?
                }
                Err(error) => {
                    json(&redactor, &json!({ "schema_version": 1, "error": redactor.error(&error) }))?
                }
            },
        ),
    ];
    for (path, text) in answers {
        collector.put_text(path, text);
    }
    match daemon_file::last::<Health>(root) {
        Ok(Some(health)) => collector.put_text(health::PATH, json(&redactor, &health)?),
        Ok(None) => {}
        Err(problem) => collector.leave_out(Path::new(health::PATH), redactor.text(&problem)),
    }
    // Last, since without these it still is a report.
    programs::logs(&mut collector, programs, &redactor);
    let removed = engines::collect(&mut collector, &redactor);

    let left_out = collector.notes();
    let mut recording = Recording::new(std::mem::take(&mut collector.nodes));
    recording.about = BTreeMap::from([
        ("taken_on".to_owned(), Value::from(moment.to_string())),
        ("rocworker".to_owned(), Value::from(env!("CARGO_PKG_VERSION"))),
        ("left_out".to_owned(), json!(left_out)),
        ("removed".to_owned(), json!(removed)),
    ]);
    let mut entries = collector.entries;
    entries.insert(CAPTURE_FILE.into(), Entry::File(json(&redactor, &recording)?.into_bytes()));
    // The machine's name is in the file's name, which its owner sees and can change, not in the archive.
    let bytes = archive::pack(&format!("rocworker-report-{}", moment.compact()), moment, &entries)?;
    Ok(Report { bytes, entries: entries.len(), left_out, removed })
}

/// The default name of the file, with the machine's name if that is known.
#[must_use]
pub fn default_name(root: &Root, moment: Timestamp) -> PathBuf {
    let host = hostname(root).unwrap_or_else(|| "machine".to_owned());
    PathBuf::from(format!("rocworker-report-{host}-{}.tar.gz", moment.compact()))
}

fn json(redactor: &Redactor, answer: &impl Serialize) -> io::Result<String> {
    let mut value = serde_json::to_value(answer)?;
    redactor.names_in(&mut value);
    Ok(format!("{value:#}\n"))
}
