//! What the kernel says, explained: for programs as it is read, for people at the end.

mod json;
pub(super) mod text;

use std::collections::VecDeque;
use std::io::{self, BufRead as _, Read, stdin};

use anyhow::{anyhow, bail};
use explain::codes::reported::reported;
use explain::colours::Uncoloured;
use explain::formats;
use explain::groups::Groups;
use explain::here::Here;
use explain::journal::{self, JournalRead};
use explain::matches::{Explainer, Line};
use explain::utf16::Utf16;
use json::Json;
use kernel_log::kept;
use kernel_log::knowledge::{Found, Knowledge};
use kernel_log::scan::scan;
use printable::{printable, quoted};

use super::codes;
use super::near::near;
use crate::cli::Outcome;
use crate::cli::output::print_text;
use crate::cli::session::{Misuse, Session, absolute, caller};

pub(super) fn text(session: &Session, text: &str) -> anyhow::Result<Outcome> {
    let path = absolute(text.as_ref()).unwrap_or_default();
    let is_file = caller().is_ok_and(|it| it.stat(path).is_ok());
    // A line of a log has a blank.
    if !is_file && !text.contains(char::is_whitespace) && text.contains(['/', '.']) {
        let problem = "is no code and no file here: explain reads a log by rocworker explain - < FILE";
        return Err(Misuse(format!("explain: {} {problem}", printable(text))).into());
    }
    let (shown, name) = (printable(text), quoted(text));
    let advice =
        is_file.then(|| format!("{shown} is a file here: to read it, run rocworker explain - < {name}.\n"));
    explain(session, false, "the text", &mut Uncoloured::of(text.as_bytes()), advice)
}

/// What a person reads of what is no message of the kernel.
pub(super) enum Hint {
    /// What a program reports of ROCm, explained.
    Meaning(String),
    /// What to do about a text whose meaning is unknown.
    Advice(String),
}

impl Hint {
    /// `text`: the end of what was read, where a program says why it stops.
    fn of(text: &str) -> anyhow::Result<Self> {
        let mut meanings = Vec::new();
        for code in reported(text)? {
            let meaning = codes::text_of(&code)?.unwrap_or_default();
            meanings.push(format!("ROCm reports this, not the kernel. It means {code}.\n\n{meaning}"));
        }
        if !meanings.is_empty() {
            return Ok(Self::Meaning(meanings.join("\n")));
        }
        // In a longer text the words of a message may be far from each other.
        Ok(Self::Advice(if text.trim().contains('\n') { String::new() } else { near(text)? }))
    }
}

pub(super) fn from_stdin(session: &Session) -> anyhow::Result<Outcome> {
    let mut stdin = stdin().lock();
    // An error of this read occurs again below, where it is reported.
    let start = stdin.fill_buf().unwrap_or_default().to_vec();
    if let Some(problem) = formats::no_text(&start) {
        bail!(problem);
    }
    match Utf16::of(&start, stdin) {
        Ok(text) => explain(session, false, "stdin", &mut Uncoloured::of(text), None),
        Err(mut stdin) => {
            if start.starts_with(UTF_8_MARK) {
                stdin.consume(UTF_8_MARK.len());
            }
            explain(session, false, "stdin", &mut Uncoloured::of(stdin), None)
        }
    }
}

/// The byte order mark that some programs of Windows put in front of UTF-8.
const UTF_8_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) fn journal(session: &Session, since: Option<&str>) -> anyhow::Result<Outcome> {
    let Some(programs) = &session.programs else { return of_root(session, since) };
    answer(session, true, |knowledge, each| {
        let read = journal::read(&session.root, programs, since, knowledge, each).map_err(of_journal)?;
        Ok((read, Hint::Advice(String::new())))
    })
}

/// The kernel's records of a captured machine, or the lines of a report. No journalctl is asked beneath another Root.
fn of_root(session: &Session, since: Option<&str>) -> anyhow::Result<Outcome> {
    let path = kept::path(&session.root).filter(|_| since.is_none());
    let Some(path) = path else {
        let folder = session.root.shown("/var/log/journal");
        let folder = quoted(&folder.to_string_lossy());
        return Err(Misuse(format!(
            "--journal asks this machine's journalctl; with --root, run: journalctl --directory={folder} \
             --output=short-iso -k | rocworker explain -"
        ))
        .into());
    };
    let name = session.root.shown(path);
    let mut records = session.root.open_to_read(path)?;
    explain(session, true, &name.to_string_lossy(), &mut records, None)
}

fn of_journal(error: journal::Error) -> anyhow::Error {
    match error {
        journal::Error::Since { .. } => Misuse(error.to_string()).into(),
        // The reader of the answer may have gone.
        journal::Error::Write(error) => error.into(),
        error => error.into(),
    }
}

/// `is_own_log`: of the session's machine. `name`: what an error calls the input. `advice`: what a person reads where
/// nothing is known, in place of what the input's end says.
fn explain(
    session: &Session,
    is_own_log: bool,
    name: &str,
    input: &mut dyn Read,
    advice: Option<String>,
) -> anyhow::Result<Outcome> {
    answer(session, is_own_log, |knowledge, each| {
        let mut input = Input { input, bytes: 0, end: VecDeque::new(), failed: None };
        let read = scan(knowledge, &mut input, &mut |hit| {
            let line = Line { number: hit.line, text: hit.text, time: None };
            each(line, &hit.found)
        });
        match (read, input.failed) {
            (Ok(totals), _) => {
                let end = String::from_utf8_lossy(input.end.make_contiguous()).into_owned();
                // The first line may lack its beginning.
                let whole =
                    if input.bytes > END as u64 { end.split_once('\n').map_or("", |it| it.1) } else { &end };
                let hint = advice.map_or_else(|| Hint::of(whole), |advice| Ok(Hint::Advice(advice)))?;
                Ok((JournalRead { totals, ..JournalRead::default() }, hint))
            }
            (Err(_), Some(error)) => Err(anyhow!("cannot read {name} after {} bytes: {error}", input.bytes)),
            (Err(error), None) => Err(error.into()),
        }
    })
}

/// What is called with each match.
type Each<'e, 'k> = dyn FnMut(Line<'_>, &Found<'k>) -> io::Result<()> + 'e;

/// `is_own_log`: of this machine.
fn answer(
    session: &Session,
    is_own_log: bool,
    read: impl for<'k> FnOnce(&'k Knowledge, &mut Each<'_, 'k>) -> anyhow::Result<(JournalRead, Hint)>,
) -> anyhow::Result<Outcome> {
    let knowledge = Knowledge::built_in()?;
    let here = Here::read(&session.root);
    let mut explainer = Explainer::new(&here, is_own_log);
    if session.format.is_json() {
        let mut json = Json::new();
        let read = read(knowledge, &mut |line, found| json.add(&explainer.explain(line, found)));
        let read = read.map(|(read, _)| read);
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
        print_text(&text::shown(&groups, read.as_ref().ok(), session.format))?;
    }
    warn(&read?.0);
    Ok(Outcome::Done)
}

fn warn(read: &JournalRead) {
    read.warnings.iter().for_each(|text| tracing::warn!("journalctl: {}", printable(text)));
}

/// How many bytes of an input's end are kept.
const END: usize = 8 << 10;

/// Knows the end of what was read, and where reading failed.
struct Input<R> {
    input: R,
    bytes: u64,
    end: VecDeque<u8>,
    failed: Option<io::Error>,
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(to);
        match read {
            Ok(count) => {
                self.bytes += count as u64;
                self.end.extend(to.get(count.saturating_sub(END)..count).unwrap_or_default());
                self.end.drain(..self.end.len().saturating_sub(END));
            }
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
