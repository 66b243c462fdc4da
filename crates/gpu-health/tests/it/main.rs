//! Judges cards by the built-in rules and by others.
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

use gpu_health::judge::Judge;
use gpu_health::known::{Event, Known, Log};
use gpu_health::rules::Rules;
use inventory::PciAddress;
use inventory::health::{GpuHealth, Health};
use inventory::readings::{CardReadings, RasBlock, Temperature, XgmiLink};
use inventory::series;
use inventory::snapshot::Card;
use kernel_log::knowledge::{Class, Ended, Severity};

static BUILT_IN: LazyLock<Rules> = LazyLock::new(Rules::built_in);

const NOW: u64 = 1_800_000_000;

fn address(text: &str) -> PciAddress {
    text.parse().unwrap()
}

/// The card at 0000:03:00.0, awake and driven by amdgpu.
fn card(samples: Vec<Sample>) -> Card {
    let mut readings = CardReadings::default();
    for Sample { name, labels, value } in &samples {
        read(&mut readings, name, labels, *value);
    }
    // What is asked for is what a rule finds.
    for Sample { name, labels, value } in samples {
        let series = series::ALL.into_iter().find(|series| series.name == name).unwrap();
        let found = (series.values)(&readings).into_iter().find(|it| it.labels == labels);
        assert!(found.is_some_and(|it| it.value.total_cmp(&value).is_eq()), "{name} {labels:?} {value}");
    }
    Card {
        pci: Some(address("0000:03:00.0")),
        driver: Some("amdgpu".to_owned()),
        bridges: vec![address("0000:00:01.1")],
        readings,
        ..Card::default()
    }
}

/// A reading by the name that a rule gives it.
#[derive(Debug, Clone, PartialEq)]
struct Sample {
    name: &'static str,
    labels: Vec<(&'static str, String)>,
    value: f64,
}

fn sample(name: &'static str, labels: &[(&'static str, &str)], value: f64) -> Sample {
    Sample { name, labels: labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(), value }
}

/// Puts a sample where amdgpu puts what it reads.
fn read(card: &mut CardReadings, name: &str, labels: &[(&'static str, String)], value: f64) {
    let of = |wanted: &str| labels.iter().find(|(name, _)| *name == wanted).map_or("", |(_, value)| value);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the tests' counts are small"
    )]
    let count = value as u64;
    let width = u32::try_from(count).ok();
    match (name, of("limit"), of("state"), of("severity"), of("link")) {
        ("rocm_gpu_temperature", ..) => temperature(card, of("sensor")).celsius = Some(value),
        (_, "critical", ..) => temperature(card, of("sensor")).critical_celsius = Some(value),
        (_, "emergency", ..) => temperature(card, of("sensor")).emergency_celsius = Some(value),
        ("rocm_power_usage", ..) => card.power.watts = Some(value),
        ("rocm_gpu_devcoredump", ..) => card.hang = Some(value > 0.0),
        (_, _, "retired", ..) => card.retired_pages.get_or_insert_default().retired = count,
        (_, _, "pending", ..) => card.retired_pages.get_or_insert_default().pending = count,
        (_, _, "unreservable", ..) => card.retired_pages.get_or_insert_default().unreservable = count,
        (_, _, _, "correctable", _) => block(card, of("block")).correctable = Some(count),
        (_, _, _, "deferred", _) => block(card, of("block")).deferred = Some(count),
        (_, _, _, "uncorrectable", _) => block(card, of("block")).uncorrectable = Some(count),
        ("rocm_gpu_throttle_status", ..) => {
            let reasons = ["thermal", "power"].into_iter();
            let reason = reasons.filter(|reason| *reason == of("reason"));
            card.throttle.status.extend(reason.map(|reason| (reason.into(), value > 0.0)));
        }
        ("rocm_pcie_link_width_lanes", .., "current") => card.pcie.width = width,
        ("rocm_pcie_link_width_lanes", .., "max") => card.pcie.max_width = width,
        ("rocm_xgmi_link_up", .., link) => {
            let link = link.parse().unwrap();
            let up = Some(value > 0.0);
            card.xgmi.links.push(XgmiLink { link, up, read_bytes: None, written_bytes: None });
        }
        _ => panic!("no reading of a card is {name} {labels:?}"),
    }
}

fn temperature<'c>(card: &'c mut CardReadings, sensor: &str) -> &'c mut Temperature {
    let known = card.temperatures.iter().position(|it| it.sensor == sensor).unwrap_or_else(|| {
        let sensor = sensor.to_owned();
        card.temperatures.push(Temperature {
            sensor,
            celsius: None,
            critical_celsius: None,
            emergency_celsius: None,
        });
        card.temperatures.len() - 1
    });
    &mut card.temperatures[known]
}

fn block<'c>(card: &'c mut CardReadings, name: &str) -> &'c mut RasBlock {
    let known = card.ras.iter().position(|it| it.block == name).unwrap_or_else(|| {
        let block = name.to_owned();
        card.ras.push(RasBlock { block, correctable: None, deferred: None, uncorrectable: None });
        card.ras.len() - 1
    });
    &mut card.ras[known]
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
        // The `ends` of gpu-reset-recovered in crates/kernel-log/knowledge/messages.toml.
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

/// Judges a card by the built-in rules, with a log that goes back to boot.
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
