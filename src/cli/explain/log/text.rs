//! The answer for people: one explanation for each message and GPU.

use std::fmt::Write as _;

use anstyle::Style;
use explain::advice::{Advice, Purpose};
use explain::groups::{Group, Groups, MOST};
use explain::journal::JournalRead;
use explain::matches::Meaning;
use kernel_log::knowledge::{Blame, Severity};
use printable::{counted, printable};

use super::Hint;
use crate::cli::detect::ranges;
use crate::cli::explain::word;
use crate::cli::options::Format;
use crate::cli::output::{BAD, DIM, HEADING, WARN, styled};
use crate::cli::table::{Cell, Columns};

/// `read`: `None` where reading failed, which the caller reports.
pub(super) fn shown(groups: &Groups<'_>, read: Option<&(JournalRead, Hint)>, format: Format) -> String {
    let entries = groups.by_severity();
    let mut text = if entries.len() > 1 { summary(&entries, format) } else { String::new() };
    for group in entries {
        text += &explained(group);
        text.push('\n');
    }
    if groups.more > 0 {
        writeln!(
            text,
            "{} more: of messages and GPUs only the first {MOST} are shown, and -o json has each.",
            count(groups.more, "line")
        )
        .ok();
    }
    if let Some((read, hint)) = read {
        text += &ending(groups, read, hint);
    }
    text
}

fn ending(groups: &Groups<'_>, read: &JournalRead, hint: &Hint) -> String {
    let lines = count(read.totals.lines - read.damaged, "line");
    let mut text = match groups.matches {
        0 if read.totals.lines == 0 => "Nothing was read: there is not a line in it.\n".to_owned(),
        0 => match hint {
            Hint::Meaning(meaning) => meaning.clone(),
            Hint::Advice(advice) => {
                format!("Nothing known was found in {lines}: the meaning is unknown.\n{advice}")
            }
        },
        matches => format!("{} with a known message, of {lines} read.\n", count(matches, "line")),
    };
    if let (1.., Hint::Meaning(meaning)) = (groups.matches, hint) {
        text += &format!("\n{meaning}");
    }
    if read.totals.cut > 0 {
        writeln!(text, "{} too long: only the start was looked at.", count(read.totals.cut, "line")).ok();
    }
    if let Some(advice) = unstripped(read) {
        writeln!(text, "{advice}").ok();
    }
    if read.damaged > 0 {
        writeln!(text, "{} of the journal could not be read.", count(read.damaged, "message")).ok();
    }
    text
}

/// What a person does about a line whose front rocworker does not know: a message's words behind it prove nothing.
pub(super) fn unstripped(read: &JournalRead) -> Option<String> {
    let totals = read.totals;
    let first = totals.first_unstripped?;
    let (lines, have) =
        (count(totals.unstripped, "line"), if totals.unstripped == 1 { "has" } else { "have" });
    Some(format!(
        "{lines} {have} words of a known message behind something that rocworker does not strip, the first in line \
         {first}: pass the log as `dmesg` or `journalctl -k -o short-iso` prints it."
    ))
}

/// A table with a line for each GPU that the entries name: its worst entry gives the severity.
fn summary(entries: &[&Group<'_>], format: Format) -> String {
    let mut gpus: Vec<(&Group<'_>, u64, bool)> = Vec::new();
    for &entry in entries {
        let (gpu, drain) = (&entry.first.advice.gpu, entry.first.message.drain);
        match gpus.iter_mut().find(|(worst, ..)| worst.first.advice.gpu == *gpu) {
            Some((worst, lines, is_drained)) => {
                // Of two as severe the later one tells how it ended: a reset that failed, after the hang.
                if worst.first.message.severity == entry.first.message.severity {
                    *worst = entry;
                }
                *lines += entry.count;
                *is_drained |= drain;
            }
            None => gpus.push((entry, entry.count, drain)),
        }
    }
    let mut table = Columns::new(&["GPU", "INDEX", "SEVERITY", "LINES", "WORST", "DRAIN"]).right(&[3]);
    for (worst, lines, drain) in gpus {
        let (advice, message) = (&worst.first.advice, &worst.first.message);
        table.row([
            advice.gpu.as_deref().unwrap_or("none named").into(),
            advice.indexes.as_deref().map_or_else(|| "-".to_owned(), ranges).into(),
            Cell::styled(word(&message.severity), style(message.severity)),
            lines.to_string().into(),
            message.id.into(),
            (if drain { "yes" } else { "no" }).into(),
        ]);
    }
    table.shown(format) + "\n"
}

fn explained(group: &Group<'_>) -> String {
    let (first, message) = (&group.first, &group.first.message);
    // What is offered of a line that names no GPU is this machine's, if the line is.
    let advice = first.advice.if_of_this_machine.as_deref().unwrap_or(&first.advice);
    let mut rows = Rows::of(message);
    rows.add("GPU", &gpu(&first.advice));
    rows.add("Seen", &seen(group));
    rows.add("Evidence", &first.evidence);
    rows.meaning(message);
    if message.resets {
        rows.add("A reset takes down", &takes_down(advice));
    }
    for command in &advice.commands {
        let name = match command.purpose {
            Purpose::Look => "To look",
            Purpose::Drain => "To drain",
            Purpose::Reset => "To reset",
        };
        rows.add(name, &command.run);
    }
    advice.notes.iter().for_each(|note| rows.add("Note", note));
    if let (None, Some(card)) = (&first.advice.gpu, &advice.gpu) {
        rows.add("Note", &format!("What is said of GPU {card} holds if the line is this machine's."));
    }
    rows.source(message)
}

/// What is known of a message on every machine. `samples`: lines that have it.
pub(in crate::cli::explain) fn known(message: &Meaning<'_>, samples: &[&str]) -> String {
    let mut rows = Rows::of(message);
    samples.iter().for_each(|sample| rows.add("Logged as", sample));
    rows.meaning(message);
    rows.source(message)
}

/// An explanation: a heading, and rows with labels. Rows below one another with one label show it once.
struct Rows {
    text: String,
    last: String,
}

impl Rows {
    fn of(message: &Meaning<'_>) -> Self {
        let (severity, style) = (word(&message.severity), style(message.severity));
        let name = format!("{} ({})", message.id, word(&message.class));
        let text = format!("{}  {}\n", styled(style, severity), styled(HEADING, name));
        Self { text, last: String::new() }
    }

    fn add(&mut self, name: &str, value: &str) {
        let label = if self.last == name { String::new() } else { format!("{name}:") };
        writeln!(self.text, "  {label:<20}{}", printable(value)).ok();
        name.clone_into(&mut self.last);
    }

    fn meaning(&mut self, message: &Meaning<'_>) {
        self.add("Meaning", message.means);
        self.add("Blame", blame(message.blame));
        self.add("Drain this GPU", if message.drain { "yes" } else { "no" });
        message.now.iter().for_each(|step| self.add("Now", step));
        message.later.iter().for_each(|step| self.add("Later", step));
    }

    fn source(mut self, message: &Meaning<'_>) -> String {
        self.add("Source", &format!("{}; confidence {}", message.source, word(&message.confidence)));
        self.text
    }
}

fn gpu(advice: &Advice) -> String {
    let Some(address) = &advice.gpu else {
        return match &advice.if_of_this_machine {
            Some(own) => format!("the line names none; if it is this machine's: {}", gpu(own)),
            None if advice.is_of_no_gpu => "none".to_owned(),
            None => "the line names none".to_owned(),
        };
    };
    let Some(indexes) = &advice.indexes else { return format!("{address}, not of this machine") };
    let partitions = match &**indexes {
        [index] => format!("index {index}"),
        indexes => format!("{} partitions, indexes {}", indexes.len(), ranges(indexes)),
    };
    let hive = advice.hive.as_ref().map_or_else(String::new, |hive| format!(", XGMI hive {hive}"));
    format!("{address}, {partitions}{hive}")
}

fn seen(group: &Group<'_>) -> String {
    let (line, first) = (group.first.line, &group.first);
    let time = |time: &Option<String>| time.as_ref().map_or_else(String::new, |time| format!(", {time}"));
    match group.count {
        1 => format!("line {line}{}", time(&first.time)),
        times => {
            let (from, to) = (time(&first.time), time(&group.last_time));
            format!("{times} times, first on line {line}{from}; last on line {}{to}", group.last_line)
        }
    }
}

fn takes_down(advice: &Advice) -> String {
    if advice.indexes.is_none() {
        let why =
            if advice.gpu.is_some() { "this machine does not have the GPU" } else { "the line names no GPU" };
        return format!("unknown: {why}");
    }
    let mut cards: Vec<&str> = advice.takes_down.iter().map(|taken| &*taken.gpu).collect();
    cards.dedup();
    let mut indexes: Vec<u32> = advice.takes_down.iter().map(|taken| taken.index).collect();
    indexes.sort_unstable();
    match &*cards {
        [_] if indexes.len() == 1 => format!("this GPU alone, index {}", ranges(&indexes)),
        [_] => format!("all {} partitions of the card, indexes {}", indexes.len(), ranges(&indexes)),
        cards => format!(
            "all {} cards of the XGMI hive, indexes {}: {}",
            cards.len(),
            ranges(&indexes),
            cards.join(", ")
        ),
    }
}

fn style(severity: Severity) -> Style {
    match severity {
        Severity::Critical => BAD,
        Severity::Warning => WARN,
        Severity::Info => DIM,
    }
}

fn blame(blame: Blame) -> &'static str {
    match blame {
        Blame::Application => "the application",
        Blame::Driver => "the driver",
        Blame::Hardware => "the hardware",
        Blame::Unknown => "unknown: the message alone does not tell",
    }
}

fn count(count: u64, what: &str) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), what)
}
