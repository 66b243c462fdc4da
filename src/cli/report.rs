use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::ensure;
use host::timestamp::Timestamp;
use printable::counted;
use serde::Serialize;

use super::Outcome;
use super::options::Format;
use super::output::{DIM, styled};
use super::session::{Misuse, Session, absolute, callers_file};
use crate::report::{LeftOut, Report, default_name, new_file, take};

/// Enough to see what kind of thing is missing; the whole list is in the archive.
const SHOWN: usize = 10;

#[derive(Serialize)]
struct Answer<'a> {
    schema_version: u32,
    path: &'a Path,
    bytes: usize,
    entries: usize,
    left_out: &'a [LeftOut],
    removed: &'a BTreeMap<String, usize>,
}

pub(crate) fn run(session: &Session, file: Option<&Path>) -> anyhow::Result<Outcome> {
    // Before minutes of reading: where it is to go must be there.
    let destination = Destination::of(file)?;
    if destination == Destination::Stdout && std::io::stdout().is_terminal() {
        return Err(Misuse(
            "--file -: an archive is no text for a terminal; name a file, or redirect stdout".into(),
        )
        .into());
    }
    // A configuration that is wrong is a reason for a report, not against it.
    let config = session.config().map_err(|error| format!("{error:#}"));
    let moment = Timestamp::of(SystemTime::now());
    let report =
        take(&session.root, config.as_ref().map_err(Clone::clone), session.programs.as_ref(), moment)?;
    let name = default_name(&session.root, moment);
    let Some(path) = destination.put(&name, &report.bytes)? else { return Ok(Outcome::Done) };
    let answer = Answer {
        schema_version: 1,
        path: &path,
        bytes: report.bytes.len(),
        entries: report.entries,
        left_out: &report.left_out,
        removed: &report.removed,
    };
    session.format.print(&answer, || text(&path, &report))?;
    Ok(Outcome::Done)
}

/// Where this machine keeps a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    Stdout,
    File(PathBuf),
    /// A file of a name of its own in this folder.
    Folder(PathBuf),
}

/// What is known of another machine's report without unpacking it.
#[derive(Serialize)]
struct Received<'a> {
    schema_version: u32,
    path: &'a Path,
    bytes: usize,
}

impl Destination {
    pub(crate) fn of(file: Option<&Path>) -> anyhow::Result<Self> {
        Ok(match file {
            Some(file) if file == Path::new("-") => Self::Stdout,
            Some(file) => Self::File(callers_file(file)?),
            None => Self::Folder(absolute(Path::new("."))?),
        })
    }

    /// Several reports fit into no one file.
    pub(crate) fn require_folder(&self) -> anyhow::Result<()> {
        match self {
            Self::Folder(_) => Ok(()),
            Self::Stdout | Self::File(_) => Err(Misuse(
                "--file: several machines get a file each in this folder, so leave --file out".into(),
            )
            .into()),
        }
    }

    /// Writes an archive, into a folder under `name`. Returns the new file's path; `None` for stdout.
    fn put(&self, name: &Path, archive: &[u8]) -> anyhow::Result<Option<PathBuf>> {
        let path = match self {
            Self::Stdout => {
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(archive)?;
                stdout.flush()?;
                return Ok(None);
            }
            Self::File(path) => path.clone(),
            Self::Folder(folder) => folder.join(name),
        };
        new_file(&path, archive)?;
        Ok(Some(path))
    }

    /// Keeps the archive that a machine of this name has sent, and returns what is printed.
    pub(crate) fn save(&self, host: &str, archive: &[u8], format: Format) -> anyhow::Result<String> {
        // gzip's first bytes (RFC 1952, 2.3.1).
        ensure!(archive.starts_with(b"\x1f\x8b"), "its answer is no report: update rocworker there");
        let moment = Timestamp::of(SystemTime::now()).compact();
        let name = format!("rocworker-report-{host}-{moment}.tar.gz");
        let Some(path) = self.put(Path::new(&name), archive)? else { return Ok(String::new()) };
        if format.is_json() {
            let answer = Received { schema_version: 1, path: &path, bytes: archive.len() };
            return Ok(serde_json::to_string_pretty(&answer)? + "\n");
        }
        Ok(format!(
            "{} ({} KiB), readable by you alone\n{}\n",
            path.display(),
            archive.len().div_ceil(1024),
            styled(DIM, HINT)
        ))
    }
}

const HINT: &str =
    "Look through it before you send it. Unpacked, it is a machine: rocworker --root FOLDER detect";

fn text(path: &Path, report: &Report) -> String {
    let mut text = String::new();
    let kib = report.bytes.len().div_ceil(1024);
    writeln!(text, "{} ({} entries, {kib} KiB), readable by you alone", path.display(), report.entries).ok();
    if let files @ 1.. = report.removed.len() {
        let files = counted(files, "file");
        writeln!(text, "  carries of {files} only listed keys with typed values; capture.json lists them")
            .ok();
    }
    for note in report.left_out.iter().take(SHOWN) {
        writeln!(text, "  left out {}: {}", note.path, note.reason).ok();
    }
    if let Some(more @ 1..) = report.left_out.len().checked_sub(SHOWN) {
        writeln!(text, "  and {more} more, which capture.json in the archive lists").ok();
    }
    writeln!(text, "{}", styled(DIM, HINT)).ok();
    text
}
