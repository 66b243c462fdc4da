//! Judges how well each GPU of a machine is, from readings, messages and the last judgement.

use allocation::document::Document as _;
use inventory::PciAddress;
use inventory::health::{Deduction, GpuHealth, Health, State};
use inventory::snapshot::Card;

use crate::history::History;
use crate::known::Known;
use crate::rules::{Is, OfMetric, Rule, Rules, When};
use crate::{messages, quarantine, readings, unread};

/// What must be kept between two judgements: earlier values of what the rules want the growth of.
#[derive(Debug, Default)]
pub struct Judge {
    history: History,
    /// When this judge began: it knows no growth from before.
    began: Option<u64>,
}

impl Judge {
    pub fn judge(&mut self, rules: &Rules, known: Known<'_>) -> Health {
        let judged = known.cards.iter().filter_map(|card| Some(self.gpu(rules, &known, card, card.pci?)));
        let mut gpus: Vec<GpuHealth> = judged.collect();
        gpus.sort_by_key(|gpu| gpu.pci);
        self.history.end(rules, &known);
        let unknown = messages::unknown(rules, &known);
        Health { schema_version: Health::SCHEMA_VERSION, written_at: known.now, boot_id: None, gpus, unknown }
    }

    fn gpu(&mut self, rules: &Rules, known: &Known<'_>, card: &Card, pci: PciAddress) -> GpuHealth {
        let messages = messages::of(card, known);
        let mut holding: Vec<(&Rule, Deduction)> = Vec::new();
        let began = *self.began.get_or_insert(known.now);
        let mut unjudged = Vec::new();
        let mut is_judged = false;
        let mut hangs = false;
        for rule in &rules.rules {
            let verdict = match &rule.when {
                When::Log(of) => messages::judge(of, messages.as_deref(), card, known.now),
                When::Metric(of) => {
                    readings::judge(of, (pci, &rule.id), &card.readings, known.now, &mut self.history)
                }
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
        let mut unknown = unread::sentences(card);
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
