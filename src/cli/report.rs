use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use host::timestamp::Timestamp;
use printable::counted;
use serde::Serialize;

use super::Outcome;
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

pub(crate) fn run(session: &Session, file: Option<PathBuf>) -> anyhow::Result<Outcome> {
    let to_stdout = file.as_deref() == Some(Path::new("-"));
    if to_stdout && std::io::stdout().is_terminal() {
        return Err(Misuse(
            "--file -: an archive is no text for a terminal; name a file, or redirect stdout".into(),
        )
        .into());
    }
    // Before minutes of reading: where it is to go must be there.
    let file = file.filter(|_| !to_stdout).map(|file| callers_file(&file)).transpose()?;
    // A configuration that is wrong is a reason for a report, not against it.
    let config = session.config().map_err(|error| format!("{error:#}"));
    let moment = Timestamp::of(SystemTime::now());
    let report =
        take(&session.root, config.as_ref().map_err(Clone::clone), session.programs.as_ref(), moment)?;
    if to_stdout {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&report.bytes)?;
        stdout.flush()?;
        return Ok(Outcome::Done);
    }
    let path = absolute(&file.unwrap_or_else(|| default_name(&session.root, moment)))?;
    new_file(&path, &report.bytes)?;
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
    let hint =
        "Look through it before you send it. Unpacked, it is a machine: rocworker --root FOLDER detect";
    writeln!(text, "{}", styled(DIM, hint)).ok();
    text
}
