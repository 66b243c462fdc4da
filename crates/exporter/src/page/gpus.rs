//! The cards, each with what containers can get of it.

use maud::{Markup, html};
use telemetry::overview::{Card, Gpu, Overview};

use super::health;
use super::words::{bar, bytes, container, counted, known, table, unknown, untrusted};

pub(super) fn section(overview: &Overview) -> Markup {
    html! {
        section aria-labelledby="gpus" {
            h2 id="gpus" { "GPUs" }
            @if overview.cards.is_empty() {
                p { (overview.no_card()) " " code { "rocworker detect" } " lists what this machine has." }
            } @else {
                @if !health::is_published(overview) {
                    p { "Health is unknown: rocworker's daemon publishes none." }
                }
                div.cards {
                    @for (number, card) in overview.cards.iter().enumerate() {
                        (article(number, card, overview))
                    }
                }
            }
        }
    }
}

fn article(number: usize, card: &Card, overview: &Overview) -> Markup {
    let id = format!("card-{number}");
    let is_partitioned = card.is_partitioned();
    let modes = [&card.compute_partition, &card.memory_partition].into_iter().flatten();
    let facts = [&card.pci, &card.gfx].into_iter().flatten().chain(modes);
    html! {
        article.card aria-labelledby=(id) {
            header {
                h3 id=(id) { (name(card)) }
                (health::of_card(card))
            }
            p.model { (known(card.model.as_deref(), untrusted)) }
            p.soft.code {
                @for (place, fact) in facts.enumerate() { @if place > 0 { " · " } (untrusted(fact)) }
            }
            (unusable(card))
            (health::reasons(card, overview))
            @if card.is_suspended == Some(true) {
                p { strong { "Suspended." } " The exporter does not read it, because that would wake it." }
            } @else {
                (readings(card, is_partitioned))
            }
            @if card.pci.as_ref().is_some_and(|pci| overview.unknown.iter().any(|it| it.contains(pci))) {
                p.soft { "Some readings are missing: " a href="#missing" { "why" } "." }
            }
            @if is_partitioned { (partitions(number, card)) }
        }
    }
}

/// `GPU 0`, or `GPUs 0 to 7` of one card.
fn name(card: &Card) -> String {
    match card.indexes() {
        Some((first, last)) if first < last => format!("GPUs {first} to {last}"),
        Some((first, _)) => format!("GPU {first}"),
        None => "GPU without an index".to_owned(),
    }
}

fn unusable(card: &Card) -> Markup {
    let problems = card.problems();
    html! {
        @if !problems.is_empty() {
            ul.reasons {
                @for (head, problem) in problems { li { strong { (head) ": " } (untrusted(problem)) } }
            }
        }
    }
}

fn readings(card: &Card, is_partitioned: bool) -> Markup {
    html! {
        dl {
            dt { "Busy" }
            dd { (known(card.busy_percent, |busy| html! { (format!("{busy:.0} %")) (bar(busy, 100.0)) })) }
            dt { "Memory" }
            dd { (part(card.memory_used_bytes, card.memory_total_bytes, bytes)) }
            dt { "Power" }
            dd { (part(card.power_watts, card.power_limit_watts, |watts| format!("{watts:.0} W"))) }
            dt { "Temperature" }
            dd {
                @if card.temperatures.is_empty() { (unknown()) }
                @for (place, (sensor, celsius)) in card.temperatures.iter().enumerate() {
                    @if place > 0 { ", " }
                    (untrusted(sensor)) " " (format!("{celsius:.0} °C"))
                }
            }
            @if let (false, Some(gpu)) = (is_partitioned, card.gpus.first()) {
                dt { "Used by" }
                dd { (users(gpu)) }
            }
        }
    }
}

/// `12 W of 300 W`, and a bar where both are known.
fn part(part: Option<f64>, whole: Option<f64>, shown: impl Fn(f64) -> String) -> Markup {
    html! {
        (known(part, |part| html! { (shown(part)) }))
        @if let Some(whole) = whole { " of " (shown(whole)) }
        @if let (Some(part), Some(whole)) = (part, whole) { (bar(part, whole)) }
    }
}

fn users(gpu: &Gpu) -> Markup {
    let processes = gpu.processes.and_then(|count| usize::try_from(count).ok());
    html! {
        (known(processes, |count| html! {
            @if count > 0 { (counted(count, "process", "processes")) }
            @else if gpu.only_compute { "no compute process" }
            @else { "no process" }
        }))
        @if let Some(holder) = &gpu.lease { ", leased by " (container(holder)) }
    }
}

fn partitions(number: usize, card: &Card) -> Markup {
    let used = card.gpus.iter().filter(|gpu| gpu.processes.is_some_and(|count| count > 0)).count();
    let is_unknown = card.gpus.iter().any(|gpu| gpu.processes.is_none());
    let leased = card.gpus.iter().filter(|gpu| gpu.lease.is_some()).count();
    let rows = html! { @for gpu in &card.gpus { (row(gpu, leased > 0)) } };
    let caption = format!("{}, as containers get them", name(card));
    let mut heads = vec![
        ("GPU", false),
        ("Partition", true),
        ("Busy", true),
        ("Memory, total", true),
        ("Processes", true),
    ];
    if leased > 0 {
        heads.push(("Lease", false));
    }
    html! {
        details {
            summary {
                (counted(card.gpus.len(), "partition", "partitions")) ": "
                @if is_unknown && used == 0 { "use unknown" }
                @else if is_unknown { "at least " (used) " in use" }
                @else { (used) " in use" }
                @if leased > 0 { ", " (leased) " leased" }
            }
            (table(&format!("partitions-{number}"), &caption, &heads, &rows))
        }
    }
}

fn row(gpu: &Gpu, has_leases: bool) -> Markup {
    html! {
        tr {
            th scope="row" { (known(gpu.index, |index| html! { (index) })) }
            td.number { (known(gpu.partition, |partition| html! { (partition) })) }
            td.number { (known(gpu.busy_percent, |busy| html! { (format!("{busy:.0} %")) })) }
            td.number { (known(gpu.memory_total_bytes, |total| html! { (bytes(total)) })) }
            td.number { (known(gpu.processes, |count| html! { (count) })) }
            @if has_leases {
                td { @match &gpu.lease { Some(holder) => { (container(holder)) }, None => { "none" } } }
            }
        }
    }
}
