//! What the kernel says, explained: for programs as it is read, for people at the end.

mod json;
mod text;

use std::io::{self, BufRead as _, Read, stdin};

use anyhow::{anyhow, bail};
use explain::codes::code_reported_by_rocr;
use explain::colours::Uncoloured;
use explain::formats;
use explain::groups::Groups;
use explain::here::Here;
use explain::journal::{self, JournalRead};
use explain::matches::{Explainer, Line};
use explain::utf16::Utf16;
use json::Json;
use kernel_log::knowledge::{Found, Knowledge};
use kernel_log::scan::scan;
use printable::{printable, quoted};

use super::codes;
use crate::cli::Outcome;
use crate::cli::output::print_text;
use crate::cli::session::{Misuse, Session, absolute, caller};

pub(super) fn text(session: &Session, text: &str) -> anyhow::Result<Outcome> {
    let path = absolute(text.as_ref()).unwrap_or_default();
    let is_file = caller().is_ok_and(|it| it.stat(path).is_ok());
    let hint = match is_file {
        true => Some(format!(
            "{} is a file here: to read it, run rocworker explain - < {}.\n",
            printable(text),
            quoted(text)
        )),
        false => of_rocr(text)?,
    };
    explain(session, "the text", &mut Uncoloured::of(text.as_bytes()), hint.as_deref())
}

/// What a text means that ROCr has written to a program's stderr.
fn of_rocr(text: &str) -> anyhow::Result<Option<String>> {
    let Some(code) = code_reported_by_rocr(text)? else { return Ok(None) };
    let meaning = codes::text_of(&code)?;
    Ok(meaning
        .map(|meaning| format!("This is ROCr's message, not the kernel's. It means {code}.\n\n{meaning}")))
}

pub(super) fn from_stdin(session: &Session) -> anyhow::Result<Outcome> {
    let mut stdin = stdin().lock();
    // An error of this read occurs again below, where it is reported.
    let start = stdin.fill_buf().unwrap_or_default().to_vec();
    if let Some(problem) = formats::no_text(&start) {
        bail!(problem);
    }
    match Utf16::of(&start, stdin) {
        Ok(text) => explain(session, "stdin", &mut Uncoloured::of(text), None),
        Err(mut stdin) => {
            if start.starts_with(UTF_8_MARK) {
                stdin.consume(UTF_8_MARK.len());
            }
            let hint = of_rocr(&String::from_utf8_lossy(&start))?;
            explain(session, "stdin", &mut Uncoloured::of(stdin), hint.as_deref())
        }
    }
}

/// The byte order mark that some programs of Windows put in front of UTF-8.
const UTF_8_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) fn journal(session: &Session, since: Option<&str>) -> anyhow::Result<Outcome> {
    let Some(programs) = &session.programs else {
        let folder = session.root.shown("/var/log/journal");
        let folder = quoted(&folder.to_string_lossy());
        return Err(Misuse(format!(
            "--journal asks this machine's journalctl; with --root, run: journalctl --directory={folder} \
             --output=short-iso -k | rocworker explain -"
        ))
        .into());
    };
    answer(session, true, None, |knowledge, each| {
        journal::read(&session.root, programs, since, knowledge, each).map_err(of_journal)
    })
}

fn of_journal(error: journal::Error) -> anyhow::Error {
    match error {
        journal::Error::Since { .. } => Misuse(error.to_string()).into(),
        // The reader of the answer may have gone.
        journal::Error::Write(error) => error.into(),
        error => error.into(),
    }
}

fn explain(
    session: &Session,
    name: &str,
    input: &mut dyn Read,
    hint: Option<&str>,
) -> anyhow::Result<Outcome> {
    answer(session, false, hint, |knowledge, each| {
        let mut input = Counted { input, bytes: 0, failed: None };
        let read = scan(knowledge, &mut input, &mut |hit| {
            let line = Line { number: hit.line, text: hit.text, time: None };
            each(line, &hit.found)
        });
        match (read, input.failed) {
            (Ok(totals), _) => Ok(JournalRead { totals, ..JournalRead::default() }),
            (Err(_), Some(error)) => Err(anyhow!("cannot read {name} after {} bytes: {error}", input.bytes)),
            (Err(error), None) => Err(error.into()),
        }
    })
}

/// What is called with each match.
type Each<'e, 'k> = dyn FnMut(Line<'_>, &Found<'k>) -> io::Result<()> + 'e;

/// `is_own_log`: of this machine. `hint`: what a person reads where nothing is known, as a terminal may be shown it.
fn answer(
    session: &Session,
    is_own_log: bool,
    hint: Option<&str>,
    read: impl for<'k> FnOnce(&'k Knowledge, &mut Each<'_, 'k>) -> anyhow::Result<JournalRead>,
) -> anyhow::Result<Outcome> {
    let knowledge = Knowledge::built_in()?;
    let here = Here::read(&session.root);
    let mut explainer = Explainer::new(&here, is_own_log);
    if session.format.is_json() {
        let mut json = Json::new();
        let read = read(knowledge, &mut |line, found| json.add(&explainer.explain(line, found)));
        json.end(&read)?;
        let read = read?;
        text::unstripped(&read).iter().for_each(|text| tracing::warn!("{text}"));
        warn(&read);
        return Ok(Outcome::Done);
    }
    let mut groups = Groups::default();
    let read = read(knowledge, &mut |line, found| {
        groups.add(explainer.explain(line, found));
        Ok(())
    });
    if read.is_ok() || groups.matches > 0 {
        print_text(&text::shown(&groups, read.as_ref().ok(), session.format, hint))?;
    }
    warn(&read?);
    Ok(Outcome::Done)
}

fn warn(read: &JournalRead) {
    read.warnings.iter().for_each(|text| tracing::warn!("journalctl: {}", printable(text)));
}

/// Knows where reading failed, and that it was reading.
struct Counted<R> {
    input: R,
    bytes: u64,
    failed: Option<io::Error>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(to);
        match read {
            Ok(count) => self.bytes += count as u64,
            Err(ref error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let kind = error.kind();
                self.failed = Some(error);
                return Err(kind.into());
            }
        }
        read
    }
}
