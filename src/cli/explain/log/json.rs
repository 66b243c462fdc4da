//! `{"schema_version":1,"matches":[…]}`, written while the log is read: it has no end that memory must hold.

use std::io::{self, BufWriter, StdoutLock, Write, stdout};

use explain::journal::JournalRead;
use explain::matches::Match;
use printable::printable_json;
use serde::Serialize;
use serde_json::json;

pub(super) struct Json {
    out: BufWriter<StdoutLock<'static>>,
    has_begun: bool,
}

impl Json {
    pub(super) fn new() -> Self {
        Self { out: BufWriter::with_capacity(64 << 10, stdout().lock()), has_begun: false }
    }

    pub(super) fn add(&mut self, found: &Match<'_>) -> io::Result<()> {
        let before =
            if self.has_begun { ",\n    " } else { "{\n  \"schema_version\": 1,\n  \"matches\": [\n    " };
        self.out.write_all(before.as_bytes())?;
        self.has_begun = true;
        self.value(found)
    }

    /// What was read, or, behind the matches that were found so far, why it ended. Where there are none, the error alone
    /// is the answer.
    pub(super) fn end(&mut self, read: &anyhow::Result<JournalRead>) -> io::Result<()> {
        match (read, self.has_begun) {
            (Ok(_), false) => self.out.write_all(b"{\n  \"schema_version\": 1,\n  \"matches\": [")?,
            (_, true) => self.out.write_all(b"\n  ")?,
            (Err(_), false) => return Ok(()),
        }
        self.out.write_all(b"],\n  \"totals\": ")?;
        let totals = read.as_ref().ok().map(|read| {
            let totals = read.totals;
            json!({
                "lines": totals.lines, "bytes": totals.bytes, "cut": totals.cut, "damaged": read.damaged,
            })
        });
        self.value(&totals)?;
        self.out.write_all(b",\n  \"error\": ")?;
        self.value(&read.as_ref().err().map(|error| format!("{error:#}")))?;
        self.out.write_all(b"\n}\n")?;
        self.out.flush()
    }

    fn value(&mut self, value: &impl Serialize) -> io::Result<()> {
        let json = serde_json::to_string(value)?;
        self.out.write_all(printable_json(&json).as_bytes())
    }
}
