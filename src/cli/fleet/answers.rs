//! The answers of several machines as one.

use std::time::Duration;

use fleet::exposition;
use printable::{printable, printable_json, printable_styled};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::hosts::Named;
use crate::cli::metrics::TextFormat;
use crate::cli::options::Format;
use crate::cli::output::{BAD, HEADING, print_text, styled};

/// How this program ended for one machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Code(i32),
    /// A signal to the program that asks all machines ended it.
    Interrupted,
    Failed(String),
}

/// What this program printed for one machine.
#[derive(Debug)]
pub(super) struct HostResult {
    pub(super) ended: Ended,
    stdout: Vec<u8>,
    /// The lines on stderr that are not `error`.
    pub(super) stderr_lines: Vec<String>,
    /// Why there is no answer, or no whole one.
    pub(super) error: Option<String>,
    pub(super) took: Duration,
}

impl HostResult {
    /// An answer that is to be JSON and is not fails.
    pub(super) fn new(ended: Ended, stdout: Vec<u8>, stderr: &[u8], took: Duration, is_json: bool) -> Self {
        let ended = match ended {
            Ended::Code(0 | 3) if is_json && json(&stdout).is_none() => {
                Ended::Failed("its answer is not JSON".to_owned())
            }
            ended => ended,
        };
        let stderr = String::from_utf8_lossy(stderr);
        let mut stderr_lines: Vec<String> =
            stderr.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
        let error = match &ended {
            Ended::Code(0 | 3) => None,
            Ended::Code(code) => Some(
                last_of(&mut stderr_lines)
                    .unwrap_or_else(|| format!("rocworker exited with code {code} and no error message")),
            ),
            Ended::Interrupted => Some("interrupted before it finished".to_owned()),
            Ended::Failed(why) => Some(why.clone()),
        };
        Self { ended, stdout, stderr_lines, error, took }
    }

    pub(super) fn code(&self) -> i32 {
        match self.ended {
            Ended::Code(code) => code,
            Ended::Interrupted | Ended::Failed(_) => 1,
        }
    }
}

/// The output unchanged, if it is JSON.
fn json(stdout: &[u8]) -> Option<&RawValue> {
    serde_json::from_str(str::from_utf8(stdout).ok()?.trim()).ok()
}

/// The error's sentence, without the program's name: the last line that begins with `rocworker: `, or the last line.
/// With `-v`, more lines follow it.
fn last_of(stderr_lines: &mut Vec<String>) -> Option<String> {
    const PROGRAM: &str = "rocworker: ";
    let of_program = stderr_lines.iter().rposition(|line| line.starts_with(PROGRAM));
    let line = stderr_lines.remove(of_program.or(stderr_lines.len().checked_sub(1))?);
    Some(printable(line.strip_prefix(PROGRAM).unwrap_or(&line)))
}

#[derive(Serialize)]
struct Joined<'a> {
    schema_version: u32,
    hosts: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    host: &'a str,
    code: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// Prints the answers in the order of the hosts: text as soon as all before it are there, JSON and metrics at the end.
pub(super) struct OrderedOutput<'h> {
    hosts: &'h [Named],
    format: Format,
    metrics: Option<TextFormat>,
    /// Texts that wait for one before them.
    waiting: Vec<Option<String>>,
    next: usize,
}

impl<'h> OrderedOutput<'h> {
    pub(super) fn new(hosts: &'h [Named], format: Format, metrics: Option<TextFormat>) -> Self {
        Self { hosts, format, metrics, waiting: hosts.iter().map(|_| None).collect(), next: 0 }
    }

    pub(super) fn add(&mut self, place: usize, answered: &HostResult) -> anyhow::Result<()> {
        if self.format.is_json() || self.metrics.is_some() {
            return Ok(());
        }
        if let (Some(slot), Some(named)) = (self.waiting.get_mut(place), self.hosts.get(place)) {
            *slot = Some(text(named, answered));
        }
        while let Some(text) = self.waiting.get_mut(self.next).and_then(Option::take) {
            let between = if self.next == 0 { "" } else { "\n" };
            print_text(&format!("{between}{text}"))?;
            self.next += 1;
        }
        Ok(())
    }

    /// What is still to be printed. A machine without an answer was not asked, or was not before the end.
    pub(super) fn end(&mut self, answers: &[Option<HostResult>]) -> anyhow::Result<()> {
        if self.format.is_json() {
            return self.print_json(answers);
        }
        if let Some(format) = self.metrics {
            let answers = self.hosts.iter().zip(answers);
            let answers = answers.filter_map(|(named, it)| Some((&*named.name, &*it.as_ref()?.stdout)));
            return print_text(&exposition::joined(answers, format.into()));
        }
        for text in std::mem::take(&mut self.waiting).into_iter().flatten() {
            print_text(&format!("\n{text}"))?;
        }
        Ok(())
    }

    fn print_json(&self, answers: &[Option<HostResult>]) -> anyhow::Result<()> {
        let hosts = self.hosts.iter().zip(answers).map(|(named, answered)| {
            let Some(answered) = answered else {
                let error = Some("interrupted before rocworker queried it");
                return Entry { host: &named.name, code: 1, answer: None, error };
            };
            Entry {
                host: &named.name,
                code: answered.code(),
                answer: json(&answered.stdout),
                error: answered.error.as_deref(),
            }
        });
        let joined = Joined { schema_version: 1, hosts: hosts.collect() };
        let mut json = serde_json::to_string_pretty(&joined)?;
        json.push('\n');
        print_text(&printable_json(&json))
    }
}

/// The machine's name, its answer, and what is wrong.
fn text(named: &Named, answered: &HostResult) -> String {
    let heading = styled(HEADING, format_args!("==> {} <==", printable(&named.name)));
    let answer: String = String::from_utf8_lossy(&answered.stdout)
        .split_inclusive('\n')
        .map(|line| match line.strip_suffix('\n') {
            Some(line) => printable_styled(line) + "\n",
            None => printable_styled(line),
        })
        .collect();
    let end = if answer.is_empty() || answer.ends_with('\n') { "" } else { "\n" };
    let error = answered.error.as_ref().map(|error| format!("{} {error}\n", styled(BAD, "✗")));
    format!("{heading}\n{answer}{end}{}", error.unwrap_or_default())
}
