//! Judges a card by the messages in the kernel's log.

use inventory::snapshot::Card;
use kernel_log::knowledge::{Class, Ended, Severity};

use crate::known::{Event, Known};
use crate::rules::{OfLog, Rules, Verdict, When};

/// A message, and whether no later one ends what it says.
pub(crate) struct Logged<'a> {
    event: &'a Event,
    is_open: bool,
}

/// A card's messages; `None` where the log cannot be read. A message that names no GPU is the only card's.
pub(crate) fn of<'a>(card: &Card, known: &Known<'a>) -> Option<Vec<Logged<'a>>> {
    let is_its = |event: &&Event| match event.gpu {
        Some(gpu) => card.pci == Some(gpu) || card.bridges.contains(&gpu),
        None => !is_nobodys(event, known),
    };
    known.log.ok().map(|log| logged(log.events.iter().filter(is_its)))
}

/// Whether a message names no GPU and may be about another device: the machine has several cards, or the
/// firmware, which reports errors of every device, has logged it (drivers/firmware/efi/cper.c).
fn is_nobodys(event: &Event, known: &Known<'_>) -> bool {
    event.gpu.is_none() && (known.cards.len() != 1 || event.line.contains("[Hardware Error]"))
}

/// The events in their order, each with whether a later one ends it.
fn logged<'a>(events: impl Iterator<Item = &'a Event>) -> Vec<Logged<'a>> {
    let mut logged: Vec<Logged<'a>> = Vec::new();
    for event in events {
        for before in logged.iter_mut().filter(|_| !event.ends.is_empty()) {
            before.is_open &= !is_ended(before.event, event);
        }
        logged.push(Logged { event, is_open: true });
    }
    logged
}

/// Whether `by` ends `event`. If both name a ring, the rings must be equal.
fn is_ended(event: &Event, by: &Event) -> bool {
    let is_other_ring = event.ring.is_some() && by.ring.is_some() && event.ring != by.ring;
    let is_meant = |ended: &Ended| match ended {
        Ended::Class(class) => *class == event.class,
        Ended::Message(id) => *id == event.message,
    };
    !is_other_ring && by.ends.iter().any(is_meant)
}

pub(crate) fn judge(of: &OfLog, messages: Option<&[Logged<'_>]>, card: &Card, now: u64) -> Verdict {
    let is_meant = |logged: &&Logged<'_>| {
        let event = logged.event;
        event.class == of.class
            && event.severity >= of.severity
            && of.message.as_ref().is_none_or(|id| *id == event.message)
            && of.within_s.is_none_or(|seconds| now.saturating_sub(event.at) <= seconds)
            && (logged.is_open || !of.open)
    };
    let meant: Vec<&Logged<'_>> = messages?.iter().filter(is_meant).collect();
    match meant.last() {
        Some(last) if meant.len() >= of.at_least => Some(Some(match meant.len() {
            1 => last.event.line.clone(),
            count => format!("{count} messages, the last: {}", last.event.line),
        })),
        // The log has nothing on a card that no driver of AMD's drives, so the rule cannot be judged.
        _ => card.is_driven_by_amdgpu().then_some(None),
    }
}

/// Whether the card hangs, where no rule has found a hang: `Some(false)` if it does not, `None` if it may.
/// The log is newer than the dump, which stays for five minutes.
pub(crate) fn hang(messages: Option<&[Logged<'_>]>, card: &Card, known: &Known<'_>) -> Option<bool> {
    let has_no_dump = card.readings.hang == Some(false);
    let (Ok(log), Some(messages)) = (known.log, messages) else { return has_no_dump.then_some(false) };
    // A message that is less than critical names a delay.
    let is_open_hang = |logged: &Logged<'_>| {
        logged.is_open && logged.event.class == Class::Hang && logged.event.severity == Severity::Critical
    };
    let is_anybodys = |logged: &Logged<'_>| is_nobodys(logged.event, known) && is_open_hang(logged);
    if messages.iter().any(is_open_hang) || logged(log.events.iter()).iter().any(is_anybodys) {
        return None;
    }
    let is_recovery = |logged: &Logged<'_>| logged.event.ends.contains(&Ended::Class(Class::Hang));
    let is_silent = card.is_driven_by_amdgpu() && log.is_whole;
    (is_silent || has_no_dump || messages.iter().any(is_recovery)).then_some(false)
}

/// Sentences on the log's gaps, and on its messages that belong to no card.
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
    let nobodys = log.events.iter().filter(|event| is_nobodys(event, known) && is_ruled(event.class));
    let nobodys: Vec<&Event> = nobodys.collect();
    if let Some(last) = nobodys.last() {
        let messages = match nobodys.len() {
            1 => "1 message of the kernel names".to_owned(),
            count => format!("{count} messages of the kernel name"),
        };
        unknown.push(format!("{messages} no GPU, the last: {}", last.line));
    }
    unknown
}
