//! A line with a known message, and what it means here.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use inventory::PciAddress;
use kernel_log::knowledge::{Blame, Class, Confidence, Found, Message, Severity};
use printable::printable;
use serde::Serialize;

use super::advice::Advice;
use super::here::Here;

/// Characters of a line that are shown. The kernel's own lines are shorter (PRINTKRB_RECORD_MAX of
/// kernel/printk/printk.c, 1,024 with all that is in front).
const EVIDENCE: usize = 400;

/// How much of it comes before the message where the line is longer.
const BEFORE: usize = 100;

/// Messages and GPUs of which the advice is kept: more than a machine's log has.
const KEPT: usize = 256;

/// A line with a known message, as `explain -o json` prints it.
#[derive(Debug, Clone, Serialize)]
pub struct Match<'k> {
    /// Counted from 1: the line in a text, or the message in a journal.
    pub line: u64,
    /// When journald got it, where it comes from the journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// What the line names, which may be a port above the GPU.
    pub address: Option<String>,
    #[serde(flatten)]
    pub message: Meaning<'k>,
    /// The line, or the part of it that has the message: without what would steer a terminal.
    pub evidence: String,
    /// What the kernel filled in: `ring`, `process`.
    pub values: BTreeMap<&'k str, String>,
    #[serde(flatten, serialize_with = "as_it_is")]
    pub advice: Rc<Advice>,
}

/// What is known of the message on every machine.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Meaning<'k> {
    pub id: &'k str,
    pub class: Class,
    pub severity: Severity,
    pub blame: Blame,
    pub drain: bool,
    pub resets: bool,
    pub confidence: Confidence,
    pub source: &'k str,
    pub means: &'k str,
    pub now: &'k [String],
    pub later: &'k [String],
}

impl<'k> Meaning<'k> {
    #[must_use]
    pub fn of(message: &'k Message) -> Self {
        Self {
            id: &message.id,
            class: message.class,
            severity: message.severity,
            blame: message.blame,
            drain: message.drain,
            resets: message.reset,
            confidence: message.confidence,
            source: &message.source,
            means: &message.means,
            now: &message.now,
            later: &message.later,
        }
    }

    /// The meaning of a line about another device: the steps are for a GPU.
    fn of_no_gpu(self) -> Self {
        Self { drain: false, resets: false, now: &[], later: &[], ..self }
    }
}

fn as_it_is<S: serde::Serializer>(advice: &Rc<Advice>, serializer: S) -> Result<S::Ok, S::Error> {
    advice.as_ref().serialize(serializer)
}

/// A line that may have a message.
#[derive(Debug)]
pub struct Line<'t> {
    pub number: u64,
    pub text: &'t [u8],
    pub time: Option<String>,
}

/// A message's id, and the address or PCI ids of what it is about.
type Subject = (String, Option<PciAddress>, Option<(u16, u16)>);

/// Gives each message its meaning on one machine.
#[derive(Debug)]
pub struct Explainer<'h> {
    here: &'h Here,
    /// Whether the log is this machine's own, and not a log of another machine.
    is_own_log: bool,
    advice: HashMap<Subject, Rc<Advice>>,
}

impl<'h> Explainer<'h> {
    #[must_use]
    pub fn new(here: &'h Here, is_own_log: bool) -> Self {
        Self { here, is_own_log, advice: HashMap::new() }
    }

    pub fn explain<'k>(&mut self, line: Line<'_>, found: &Found<'k>) -> Match<'k> {
        let address = found.device;
        let evidence = evidence(line.text, found.pattern.text.words().next().unwrap_or_default());
        let advice = self.advice(found.message, address, found.pci_ids());
        let meaning = Meaning::of(found.message);
        Match {
            line: line.number,
            time: line.time,
            address: address.map(|address| address.to_string()),
            message: if advice.is_of_no_gpu { meaning.of_no_gpu() } else { meaning },
            evidence,
            values: found.values.iter().map(|(name, value)| (*name, printable(value))).collect(),
            advice,
        }
    }

    /// `ids`: what a line of KFD's names in place of an address.
    fn advice(
        &mut self,
        message: &Message,
        address: Option<PciAddress>,
        ids: Option<(u16, u16)>,
    ) -> Rc<Advice> {
        let key = (message.id.clone(), address, ids);
        if let Some(known) = self.advice.get(&key) {
            return Rc::clone(known);
        }
        let only = self.here.card_of(message, ids).map(|card| card.address).filter(|_| self.is_own_log);
        let advice = match address.or(only) {
            None => Advice::of_any_machine(message, ids, self.here),
            address => Advice::of(message, address, ids, self.here),
        };
        let advice = Rc::new(advice);
        if self.advice.len() < KEPT {
            self.advice.insert(key, Rc::clone(&advice));
        }
        advice
    }
}

/// `words`: the message's first ones, near which a long line is shown.
fn evidence(line: &[u8], words: &str) -> String {
    let text = String::from_utf8_lossy(line);
    let count = text.chars().count();
    if count <= EVIDENCE {
        return printable(text.trim_end());
    }
    let at = text.find(words).map_or(0, |at| text.get(..at).unwrap_or_default().chars().count());
    let from = at.saturating_sub(BEFORE);
    let shown: String = text.chars().skip(from).take(EVIDENCE).collect();
    let dots = |cut: bool| if cut { "…" } else { "" };
    format!("{}{}{}", dots(from > 0), printable(&shown), dots(from + EVIDENCE < count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_line_the_part_with_the_message_is_shown_and_nothing_steers() {
        assert_eq!(evidence(b"ring\x1b[2J gfx \xff\r\n", "ring"), "ring\\u{1b}[2J gfx \u{fffd}");
        let long = format!("{}ring gfx{}", "é".repeat(5000), "x".repeat(5000));
        let shown = evidence(long.as_bytes(), "ring ");
        assert!(shown.starts_with("…é") && shown.ends_with("x…") && shown.contains("ring gfx"), "{shown}");
        assert_eq!(shown.chars().count(), EVIDENCE + 2);
    }
}
