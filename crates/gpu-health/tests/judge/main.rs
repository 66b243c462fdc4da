//! What is judged of cards, by the built-in rules and by others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod built_in;
mod document;
mod hang;
mod over_time;
mod properties;
mod rules_file;
mod sequences;
mod which_card;

use std::sync::LazyLock;

use gpu_health::judge::{Card, Event, Judge, Known, Log};
use gpu_health::rules::Rules;
use inventory::PciAddress;
use inventory::health::{GpuHealth, Health};
use kernel_log::knowledge::{Class, Ended, Severity};
use telemetry::metrics::ALL;
use telemetry::sample::Sample;

static BUILT_IN: LazyLock<Rules> = LazyLock::new(Rules::built_in);

const NOW: u64 = 1_800_000_000;

fn address(text: &str) -> PciAddress {
    text.parse().unwrap()
}

/// The card at 0000:03:00.0, awake and driven by amdgpu.
fn card(samples: Vec<Sample>) -> Card {
    Card {
        pci: address("0000:03:00.0"),
        bridges: vec![address("0000:00:01.1")],
        is_driven: true,
        samples,
        unread: Vec::new(),
    }
}

fn sample(name: &str, labels: &[(&'static str, &str)], value: f64) -> Sample {
    let metric = ALL.into_iter().find(|metric| metric.name == name).unwrap();
    let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Sample { metric, labels, value }
}

/// A critical message of that card, so many seconds ago.
fn event(class: Class, ago: u64) -> Event {
    Event {
        at: NOW - ago,
        class,
        severity: Severity::Critical,
        gpu: Some(address("0000:03:00.0")),
        message: if class == Class::ResetRecovered { "gpu-reset-recovered" } else { "a-message" }.to_owned(),
        ring: None,
        // Those of gpu-reset-recovered in crates/kernel-log/knowledge/messages.toml.
        ends: match class {
            Class::ResetRecovered => {
                [Class::Hang, Class::ResetFailed, Class::InitFailed, Class::Firmware].map(Ended::Class).into()
            }
            _ => Vec::new(),
        },
        line: format!("amdgpu 0000:03:00.0: {class:?} {ago} s ago"),
    }
}

fn judged(rules: &Rules, card: &Card, log: Result<Log<'_>, &str>) -> GpuHealth {
    let known = Known { now: NOW, cards: std::slice::from_ref(card), log, last: None };
    let mut health = Judge::default().judge(rules, known);
    assert_eq!(health.gpus.len(), 1);
    health.gpus.remove(0)
}

/// By the built-in rules, with a log that goes back to boot.
fn of(card: &Card, events: &[Event]) -> GpuHealth {
    judged(&BUILT_IN, card, Ok(Log { events, is_whole: true }))
}

fn rules_of(gpu: &GpuHealth) -> Vec<(&str, u8)> {
    gpu.deductions.iter().map(|deduction| (deduction.rule.as_str(), deduction.points)).collect()
}

fn health(cards: &[Card], events: &[Event]) -> Health {
    let log = Ok(Log { events, is_whole: true });
    Judge::default().judge(&BUILT_IN, Known { now: NOW, cards, log, last: None })
}
