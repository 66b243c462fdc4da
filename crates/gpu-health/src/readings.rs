//! Tests a rule against a card's readings.

use inventory::PciAddress;
use inventory::readings::CardReadings;
use inventory::series::{Label, Value};

use crate::history::History;
use crate::rules::{Is, OfMetric, Selector, Span, Verdict};

/// `pci` and `rule`, the rule's id: by them `history` keeps a counter's earlier values.
pub(crate) fn judge(
    when: &OfMetric,
    (pci, rule): (PciAddress, &str),
    readings: &CardReadings,
    now: u64,
    history: &mut History,
) -> Verdict {
    let OfMetric { of, is } = when;
    let mut is_judged = false;
    let mut holds = Vec::new();
    for it in values(of, readings) {
        let value = it.value;
        let verdict = match is {
            Is::Above(number) => Some(against(of, &it, "above", *number, value > *number)),
            Is::AtLeast(number) => Some(against(of, &it, "at least", *number, value >= *number)),
            Is::Below(number) => Some(against(of, &it, "below", *number, value < *number)),
            Is::AboveOther(other) => compared_value(&it, of, other, readings)
                .filter(|limit| limit.value > 0.0)
                .map(|limit| compared((of, &it), "above", (other, &limit), value > limit.value)),
            Is::BelowOther(other) => compared_value(&it, of, other, readings)
                .map(|limit| compared((of, &it), "below", (other, &limit), value < limit.value)),
            Is::Grown { by, within_s } => {
                let grown = history.grown((pci, rule, &it.labels), *within_s, (now, value));
                grown.map(|(grown, seconds)| {
                    let evidence = || format!("{} grew by {grown} within {}", named(of, &it), Span(seconds));
                    (grown >= *by).then(evidence)
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

/// The values that a rule names. What is no number is no reading.
fn values(of: &Selector, readings: &CardReadings) -> Vec<Value> {
    let mut values = (of.series.values)(readings);
    values.retain(|it| {
        let has = |wanted: &(String, String)| {
            it.labels.iter().any(|(name, value)| *name == wanted.0 && *value == wanted.1)
        };
        it.value.is_finite() && of.labels.iter().all(has)
    });
    values
}

/// The value of `other` with which a rule compares this one: labels that both have, and that no selector names, are equal.
fn compared_value(it: &Value, of: &Selector, other: &Selector, readings: &CardReadings) -> Option<Value> {
    let is_free = |(name, _): &&Label| !of.labels.iter().chain(&other.labels).any(|(named, _)| named == name);
    values(other, readings).into_iter().find(|candidate| {
        it.labels.iter().filter(is_free).all(|(name, value)| {
            candidate.labels.iter().all(|(its_name, its_value)| its_name != name || its_value == value)
        })
    })
}

fn against(of: &Selector, it: &Value, how: &str, number: f64, holds: bool) -> Option<String> {
    holds.then(|| format!("{} is {}, {how} {number}", named(of, it), it.value))
}

fn compared(
    (of, it): (&Selector, &Value),
    how: &str,
    (other, limit): (&Selector, &Value),
    holds: bool,
) -> Option<String> {
    let evidence =
        || format!("{} is {}, {how} {} of {}", named(of, it), it.value, limit.value, named(other, limit));
    holds.then(evidence)
}

/// The series' name and labels as Prometheus writes them.
fn named(of: &Selector, it: &Value) -> String {
    let labels: Vec<String> = it.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    match &labels[..] {
        [] => of.series.name.to_owned(),
        labels => format!("{}{{{}}}", of.series.name, labels.join(",")),
    }
}
