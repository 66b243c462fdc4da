//! Whether cards are divided as they should be, and whether each device is there with its memory.

use check::{About, Check};
use inventory::partitioning::Card;

use super::machine::Subject;
use crate::partition::{Look, differences, shared};

const NAME: &str = "partitions";

/// No check where no card can be divided and no profile asks for it.
pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    let different = differences(subject.root, &subject.config.partitions);
    let remedy = "`rocworker partition show` has the modes and who uses the cards, `rocworker partition plan` what a switch \
                  does; docs/partitions.md";
    let mut checks: Vec<Check> =
        different.into_iter().map(|it| About::one(NAME, "profile").warning(it.text, remedy)).collect();
    let can_be_divided = |gpu: &inventory::Gpu| gpu.partition.is_some();
    if checks.is_empty() && !subject.facts.amd().any(can_be_divided) {
        return Ok(checks);
    }
    let look = Look::at(subject.root);
    checks.extend(look.cards.iter().filter_map(|card| of_card(&look, card)));
    Ok(checks)
}

fn of_card(look: &Look, card: &Card) -> Option<Check> {
    let mode = card.compute_mode().ok()?.value;
    let about = About::one(NAME, card.pci.to_string());
    if let Some((what, remedy)) = look.missing(card) {
        return Some(about.warning(what, remedy));
    }
    if let Some(what) = shared(card) {
        let remedy = "a program that takes more than its part leaves the other devices without: limit it, as vLLM's \
                      --gpu-memory-utilization does";
        return Some(about.warning(what, remedy));
    }
    let memory = card.memory.as_ref().map_or_else(|_| String::new(), |memory| format!("/{memory}"));
    let devices = card.devices.len();
    let each = card.devices.first().and_then(|first| card.memory_of(first).ok());
    let each = each.map_or_else(String::new, |seen| {
        let computed = if seen.is_computed { " (computed)" } else { "" };
        format!(" of {} GiB{computed}", seen.value >> 30)
    });
    let count = if devices == 1 { "1 device".to_owned() } else { format!("{devices} devices") };
    Some(about.ok(format!("{mode}{memory}: {count}{each}")))
}
