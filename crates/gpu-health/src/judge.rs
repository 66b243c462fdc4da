//! Judges how well each GPU of a machine is, from readings, messages and the last judgement.

use allocation::document::Document as _;
use inventory::PciAddress;
use inventory::health::{Deduction, GpuHealth, Health, State};
use inventory::readings::CardReadings;
use kernel_log::knowledge::{Class, Ended, Severity};

use crate::history::History;
use crate::rules::{Is, OfMetric, Rule, Rules, When};
use crate::{messages, quarantine, readings};

/// A message that the kernel has logged.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Seconds since 1970.
    pub at: u64,
    pub class: Class,
    pub severity: Severity,
    /// A GPU or a bridge above one. `None`: the line does not say which.
    pub gpu: Option<PciAddress>,
    /// The message's id in the knowledge.
    pub message: String,
    /// `gfx_0.0.0`, where the line names one.
    pub ring: Option<String>,
    /// The earlier messages about this GPU that this message ends.
    pub ends: Vec<Ended>,
    pub line: String,
}

/// The kernel's log of this boot.
#[derive(Debug, Clone, Copy)]
pub struct Log<'a> {
    /// The messages in the order in which the kernel logged them.
    pub events: &'a [Event],
    /// Whether the log goes back to boot without a gap.
    pub is_whole: bool,
}

/// A card, and what was read of it.
#[derive(Debug, Clone)]
pub struct Card {
    pub pci: PciAddress,
    /// Bridges above the card on the PCI bus: what the kernel says of their links is about this card too.
    pub bridges: Vec<PciAddress>,
    /// Whether amdgpu drives the card. The log has no messages of other drivers' cards, so their health stays
    /// unknown.
    pub is_driven: bool,
    /// The card's readings. None that a rule names is there while the card is suspended, or where nothing can
    /// be read.
    pub readings: CardReadings,
    /// Sentences on what could not be read.
    pub unread: Vec<String>,
}

/// All inputs of a judgement at one time.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Seconds since 1970.
    pub now: u64,
    pub cards: &'a [Card],
    /// The kernel's log, or why it cannot be read.
    pub log: Result<Log<'a>, &'a str>,
    /// The last judgement, however old.
    pub last: Option<&'a Health>,
}

/// The state between two judgements: earlier values of series whose growth a rule tests.
#[derive(Debug, Default)]
pub struct Judge {
    history: History,
    /// When this judge began: it knows no growth from before.
    began: Option<u64>,
}

/// A rule's result for a card: `None` where it cannot be judged; else the evidence if the rule holds.
pub(crate) type Verdict = Option<Option<String>>;

impl Judge {
    pub fn judge(&mut self, rules: &Rules, known: Known<'_>) -> Health {
        let mut gpus: Vec<GpuHealth> = known.cards.iter().map(|card| self.gpu(rules, &known, card)).collect();
        gpus.sort_by_key(|gpu| gpu.pci);
        self.history.end(rules, &known);
        let unknown = messages::unknown(rules, &known);
        Health { schema_version: Health::SCHEMA_VERSION, written_at: known.now, boot_id: None, gpus, unknown }
    }

    fn gpu(&mut self, rules: &Rules, known: &Known<'_>, card: &Card) -> GpuHealth {
        let messages = messages::of(card, known);
        let mut holding: Vec<(&Rule, Deduction)> = Vec::new();
        let began = *self.began.get_or_insert(known.now);
        let mut unjudged = Vec::new();
        let mut is_judged = false;
        let mut hangs = false;
        for rule in &rules.rules {
            let verdict = match &rule.when {
                When::Log(of) => messages::judge(of, messages.as_deref(), card, known.now),
                When::Metric(of) => readings::judge(of, rule, card, known.now, &mut self.history),
            };
            is_judged |= verdict.is_some();
            let sees_all = match &rule.when {
                When::Metric(OfMetric { is: Is::Grown { within_s, .. }, .. }) => {
                    known.now.saturating_sub(began) >= *within_s
                }
                _ => true,
            };
            if verdict.is_none() || !sees_all {
                unjudged.push(&rule.id);
            }
            if let Some(evidence) = verdict.flatten() {
                hangs |= rule.hang;
                let (id, points, reason) = (rule.id.clone(), rule.points, rule.reason.clone());
                holding.push((rule, Deduction { rule: id, points, reason, evidence }));
            }
        }
        let deductions = counted(holding);
        let taken: u32 = deductions.iter().map(|deduction| u32::from(deduction.points)).sum();
        let score = is_judged.then(|| 100_u8.saturating_sub(u8::try_from(taken).unwrap_or(u8::MAX)));
        let seen = match score {
            None => State::Unknown,
            Some(score) if score < rules.unhealthy_below => State::Unhealthy,
            Some(score) if score < rules.degraded_below => State::Degraded,
            Some(_) => State::Healthy,
        };
        let lacks_log =
            known.log.is_err() && rules.rules.iter().any(|rule| matches!(rule.when, When::Log(_)));
        let mut unknown = card.unread.clone();
        let (state, score) = match seen {
            State::Unknown => {
                unknown.push("Neither a reading that a rule names nor the kernel's log is known.".to_owned());
                (seen, None)
            }
            // A hang shows in the log alone.
            State::Healthy if lacks_log => {
                unknown.push("Its readings are well, and the kernel's log is not known.".to_owned());
                (State::Unknown, None)
            }
            _ => (seen, score),
        };
        let pci = card.pci;
        let last = known.last.and_then(|health| health.gpus.iter().find(|gpu| gpu.pci == pci));
        let last = last.and_then(|gpu| gpu.quarantine.as_ref());
        let is_judged = |id: &String| !unjudged.contains(&id);
        let quarantine = quarantine::next(last, seen, &deductions, is_judged, known.now, rules.hold_s);
        let hang = if hangs { Some(true) } else { messages::hang(messages.as_deref(), card, known) };
        GpuHealth { pci, state, score, hang, deductions, unknown, quarantine, leftover: None }
    }
}

/// The deductions that count: of the rules of a group that hold the one with most points, or the first of
/// several.
fn counted(holding: Vec<(&Rule, Deduction)>) -> Vec<Deduction> {
    let mut counted: Vec<(&Rule, Deduction)> = Vec::new();
    for (rule, deduction) in holding {
        let is_of_group =
            |(other, _): &&mut (&Rule, Deduction)| rule.group.is_some() && other.group == rule.group;
        match counted.iter_mut().find(is_of_group) {
            Some(counts) if rule.points > counts.0.points => *counts = (rule, deduction),
            Some(_) => {}
            None => counted.push((rule, deduction)),
        }
    }
    counted.into_iter().map(|(_, deduction)| deduction).collect()
}
