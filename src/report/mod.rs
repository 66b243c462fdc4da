//! `report`: a bug report that is a test. One archive whose folder is a Root: what `detect` said on the machine
//! it says again on the folder, on any machine.
//!
//! What is taken is an allow list, secrets and serial numbers are left out, and what was left out is said in the
//! capture's record. docs/doctor.md tells users what stays in.

mod archive;
mod collect;
mod engines;
mod host;
mod programs;
mod redact;
mod save;
mod sysfs;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use root::{CAPTURE_FILE, Recording, Root};
use serde::Serialize;
use serde_json::{Value, json};

pub use collect::LeftOut;
pub use save::{Error, new_file};

use crate::config::Config;
use crate::detection::Detection;
use crate::doctor;
use crate::facts::Facts;
use crate::host::hostname;
use crate::timestamp::Timestamp;
use collect::{Collector, Entry};
use reconcile::command::Programs;
use redact::Redactor;

/// A report, packed.
#[derive(Debug)]
pub struct Report {
    /// The archive: tar, compressed by gzip.
    pub bytes: Vec<u8>,
    pub entries: usize,
    /// What was there and is not in it, or not whole.
    pub left_out: Vec<LeftOut>,
    /// File to number of places where a secret, or the machine's name, was removed.
    pub removed: BTreeMap<String, usize>,
}

/// Takes a report of the machine beneath `root`. `config`: the configuration, or what is wrong with it, which
/// must not keep anybody from reporting. `programs`: `None` beneath another Root than `/`.
///
/// # Errors
/// Only when the archive cannot be packed; what cannot be read is left out, and said.
pub fn take(
    root: &Root,
    config: Result<&Config, String>,
    programs: Option<&Programs>,
    moment: Timestamp,
) -> io::Result<Report> {
    let redactor = Redactor::new(root);
    let facts = Facts::read(root);
    let mut collector = Collector::new(root);
    sysfs::collect(&mut collector, &facts);
    host::collect(&mut collector);
    let answers = [
        ("/versions.json", json(&redactor, &programs::versions(root, programs, &redactor))?),
        ("/detect.json", json(&redactor, &Detection::new(&facts))?),
        (
            "/doctor.json",
            match config {
                Ok(config) => json(&redactor, &doctor::examine(root, config, &facts, programs))?,
                Err(error) => {
                    json(&redactor, &json!({ "schema_version": 1, "error": redactor.error(&error) }))?
                }
            },
        ),
    ];
    for (path, text) in answers {
        collector.put_text(path, text);
    }
    // Last, for what is full with these is a report still.
    programs::logs(&mut collector, programs, &redactor);
    let removed = engines::collect(&mut collector, &redactor);

    let left_out = collector.notes();
    let record = json(&redactor, &recording(&mut collector, moment, &left_out, &removed))?;
    let record = (PathBuf::from(CAPTURE_FILE), Entry::File(record.into_bytes()));
    let entries = std::mem::take(&mut collector.entries);
    let count = entries.len() + 1;
    let all = std::iter::once((record.0.as_path(), &record.1));
    let all = all.chain(entries.iter().map(|(path, entry)| (path.as_path(), entry)));
    // The machine's name is in the file's name, which its owner sees and can change, not in the archive.
    let bytes = archive::pack(&format!("rocworker-report-{}", moment.compact()), moment, all)?;
    Ok(Report { bytes, entries: count, left_out, removed })
}

/// What the file is called when nobody says: with the machine's name, as far as it can stand in one.
#[must_use]
pub fn default_name(root: &Root, moment: Timestamp) -> PathBuf {
    let host = hostname(root).unwrap_or_else(|| "machine".to_owned());
    PathBuf::from(format!("rocworker-report-{host}-{}.tar.gz", moment.compact()))
}

fn recording(
    collector: &mut Collector<'_>,
    moment: Timestamp,
    left_out: &[LeftOut],
    removed: &BTreeMap<String, usize>,
) -> Recording {
    let mut recording = Recording::new(std::mem::take(&mut collector.nodes));
    recording.about = BTreeMap::from([
        ("taken_on".to_owned(), Value::from(moment.to_string())),
        ("rocworker".to_owned(), Value::from(env!("CARGO_PKG_VERSION"))),
        ("left_out".to_owned(), json!(left_out)),
        ("removed".to_owned(), json!(removed)),
    ]);
    recording
}

fn json(redactor: &Redactor, answer: &impl Serialize) -> io::Result<String> {
    let mut value = serde_json::to_value(answer)?;
    redactor.names_in(&mut value);
    Ok(format!("{value:#}\n"))
}
