//! What a card's readings say of a rule.

use telemetry::sample::{Label, Sample};

use crate::history::History;
use crate::judge::{Card, Verdict};
use crate::rules::{Is, OfMetric, Rule, Selector, Span};

pub(crate) fn judge(of: &OfMetric, rule: &Rule, card: &Card, now: u64, history: &mut History) -> Verdict {
    let mut is_judged = false;
    let mut holds = Vec::new();
    for sample in samples(&of.of, card) {
        let verdict = match &of.is {
            Is::Above(number) => Some(against(sample, "above", *number, sample.value > *number)),
            Is::AtLeast(number) => Some(against(sample, "at least", *number, sample.value >= *number)),
            Is::Below(number) => Some(against(sample, "below", *number, sample.value < *number)),
            Is::AboveOther(other) => beside(sample, &of.of, other, card)
                .filter(|other| other.value > 0.0)
                .map(|other| compared(sample, "above", other, sample.value > other.value)),
            Is::BelowOther(other) => beside(sample, &of.of, other, card)
                .map(|other| compared(sample, "below", other, sample.value < other.value)),
            Is::Grown { by, within_s } => {
                let grown =
                    history.grown((card.pci, &rule.id, &sample.labels), *within_s, (now, sample.value));
                grown.map(|(grown, seconds)| {
                    let said = || format!("{} grew by {grown} within {}", named(sample), Span(seconds));
                    (grown >= *by).then(said)
                })
            }
        };
        is_judged |= verdict.is_some();
        holds.extend(verdict.flatten());
    }
    let more = holds.len().saturating_sub(1);
    let first = holds.into_iter().next();
    let evidence = first.map(|first| if more == 0 { first } else { format!("{first}; and {more} more") });
    is_judged.then_some(evidence)
}

/// The series that a rule names. What is no number is no reading.
fn samples<'c>(of: &Selector, card: &'c Card) -> impl Iterator<Item = &'c Sample> {
    card.samples.iter().filter(move |sample| {
        let has = |wanted: &(String, String)| {
            sample.labels.iter().any(|(name, value)| *name == wanted.0 && *value == wanted.1)
        };
        sample.metric.name == of.metric.name && sample.value.is_finite() && of.labels.iter().all(has)
    })
}

/// The series of `other` that stands beside this one: labels that both have, and that no selector names, are equal.
fn beside<'c>(sample: &Sample, of: &Selector, other: &Selector, card: &'c Card) -> Option<&'c Sample> {
    let is_free = |(name, _): &&Label| !of.labels.iter().chain(&other.labels).any(|(named, _)| named == name);
    samples(other, card).find(|candidate| {
        sample.labels.iter().filter(is_free).all(|(name, value)| {
            candidate.labels.iter().all(|(its_name, its_value)| its_name != name || its_value == value)
        })
    })
}

fn against(sample: &Sample, how: &str, number: f64, holds: bool) -> Option<String> {
    holds.then(|| format!("{} is {}, {how} {number}", named(sample), sample.value))
}

fn compared(sample: &Sample, how: &str, other: &Sample, holds: bool) -> Option<String> {
    let said = || format!("{} is {}, {how} {} of {}", named(sample), sample.value, other.value, named(other));
    holds.then(said)
}

/// As Prometheus writes a series.
fn named(sample: &Sample) -> String {
    let labels: Vec<String> = sample.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    match &labels[..] {
        [] => sample.metric.name.to_owned(),
        labels => format!("{}{{{}}}", sample.metric.name, labels.join(",")),
    }
}
