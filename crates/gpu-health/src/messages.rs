//! What the kernel's log says of a card.

use kernel_log::knowledge::{Class, Severity};
use telemetry::metrics::GPU_DEVCOREDUMP;

use crate::judge::{Card, Event, Known, Verdict};
use crate::rules::{OfLog, Rules, When};

/// A card's messages; `None` where the log cannot be read. A message that names no GPU is the only card's.
pub(crate) fn of<'a>(card: &Card, known: &Known<'a>) -> Option<Vec<&'a Event>> {
    let is_alone = known.cards.len() == 1;
    let is_its = |event: &&Event| match event.gpu {
        Some(gpu) => gpu == card.pci || card.bridges.contains(&gpu),
        None => is_alone,
    };
    known.log.ok().map(|log| log.events.iter().filter(is_its).collect())
}

pub(crate) fn judge(of: &OfLog, messages: Option<&[&Event]>, card: &Card, now: u64) -> Verdict {
    let messages = messages?;
    let cleared = messages.iter().rposition(|event| of.cleared_by == Some(event.class));
    let standing = messages.get(cleared.map_or(0, |at| at + 1)..).unwrap_or_default();
    let is_meant = |event: &&&Event| {
        event.class == of.class
            && event.severity >= of.severity
            && of.message.as_ref().is_none_or(|id| *id == event.message)
            && of.within_s.is_none_or(|seconds| now.saturating_sub(event.at) <= seconds)
    };
    let meant: Vec<&&Event> = standing.iter().filter(is_meant).collect();
    match meant.last() {
        Some(last) if meant.len() >= of.at_least => Some(Some(match meant.len() {
            1 => last.line.clone(),
            count => format!("{count} messages, the last: {}", last.line),
        })),
        // Nothing is logged of a card that no driver of AMD's looks at.
        _ => card.is_driven.then_some(None),
    }
}

/// Whether the card hangs now. A message that is less than critical names a delay. The log is newer than the dump, which stays for five minutes.
pub(crate) fn hang(messages: Option<&[&Event]>, card: &Card, known: &Known<'_>) -> Option<bool> {
    let last = messages.and_then(|messages| {
        messages.iter().rev().find_map(|event| match event.class {
            Class::Hang | Class::ResetFailed if event.severity == Severity::Critical => Some(true),
            Class::ResetRecovered => Some(false),
            _ => None,
        })
    });
    let dump = card.samples.iter().find(|sample| sample.metric.name == GPU_DEVCOREDUMP.name);
    let dump = dump.map(|sample| sample.value > 0.0);
    let is_whole = card.is_driven && known.log.is_ok_and(|log| log.is_whole);
    last.or(dump).or(is_whole.then_some(false))
}

/// What of the log belongs to no card.
pub(crate) fn unknown(rules: &Rules, known: &Known<'_>) -> Vec<String> {
    let log = match known.log {
        Ok(log) => log,
        Err(why) => return vec![format!("The kernel's log is not judged: {why}")],
    };
    let mut unknown = Vec::new();
    if !log.is_whole {
        unknown.push("The kernel's log does not go back to boot without a gap.".to_owned());
    }
    let is_ruled = |class: Class| {
        rules.rules.iter().any(|rule| matches!(&rule.when, When::Log(of) if of.class == class))
    };
    let is_nobodys = |event: &&Event| event.gpu.is_none() && is_ruled(event.class);
    let nobodys: Vec<&Event> = log.events.iter().filter(is_nobodys).collect();
    if let Some(last) = nobodys.last().filter(|_| known.cards.len() != 1) {
        let messages = match nobodys.len() {
            1 => "1 message of the kernel names".to_owned(),
            count => format!("{count} messages of the kernel name"),
        };
        unknown.push(format!("{messages} no GPU, the last: {}", last.line));
    }
    unknown
}
