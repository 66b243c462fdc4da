//! The cards, each with what containers can get of it.

use inventory::Identity;
use inventory::readings::Fault;
use inventory::snapshot::{Card, Gpu, Snapshot};
use maud::{Markup, html};
use telemetry::sample::count;

use super::health;
use super::words::{bar, bytes, container, counted, known, table, untrusted};

pub(super) fn section(snapshot: &Snapshot) -> Markup {
    html! {
        section aria-labelledby="gpus" {
            h2 id="gpus" { "GPUs" }
            @if snapshot.cards.is_empty() {
                p { (snapshot.no_card()) " " code { "rocworker detect" } " lists what this machine has." }
            } @else {
                @if !snapshot.publishes_health() {
                    p { "Health is unknown: rocworker's daemon publishes none. " code { "rocworker health" } " judges now." }
                }
                div.cards {
                    @for (number, card) in snapshot.cards.iter().enumerate() {
                        (article(number, card, snapshot))
                    }
                }
            }
        }
    }
}

fn article(number: usize, card: &Card, snapshot: &Snapshot) -> Markup {
    let id = format!("card-{number}");
    let Identity { gfx, compute_partition, memory_partition, .. } = &card.identity;
    let pci = card.pci.map(|address| address.to_string());
    let facts = [&pci, gfx, compute_partition, memory_partition].into_iter().flatten();
    html! {
        article.card aria-labelledby=(id) {
            header {
                h3 id=(id) { (name(card)) }
                // One sentence above the cards says why it is unknown of all.
                @if snapshot.publishes_health() { (health::of_card(card)) }
            }
            p.model { (known(card.identity.model(), untrusted)) }
            p.soft.code {
                @for (place, fact) in facts.enumerate() { @if place > 0 { " · " } (untrusted(fact)) }
            }
            (unusable(card))
            (health::reasons(card, snapshot))
            @if card.is_suspended() == Some(true) {
                p { strong { "Suspended." } " The exporter does not read it, because that would wake it." }
            } @else {
                (readings(card, snapshot))
            }
            @if pci.as_ref().is_some_and(|pci| snapshot.unknown().iter().any(|it| it.contains(pci))) {
                p.soft { "Some readings are missing: " a href="#missing" { "why" } "." }
            }
            @if card.is_partitioned() { (partitions(number, card, snapshot)) }
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

fn readings(card: &Card, snapshot: &Snapshot) -> Markup {
    let memory = card.readings.own_memory();
    let (used, total) = (of(memory.and_then(|it| it.used_bytes)), of(memory.and_then(|it| it.total_bytes)));
    let temperatures: Vec<(&str, f64)> = card.temperatures().collect();
    let whole = card.gpus.first().filter(|_| !card.is_partitioned());
    let is_counted = |gpu: &&Gpu| snapshot.process_count(card, gpu).is_some();
    let missing = card.missing();
    html! {
        dl {
            @if let Some(busy) = card.readings.busy_percent {
                dt { "Busy" }
                dd { (format!("{busy:.0} %")) (bar(busy, 100.0)) }
            }
            (row_of("Memory", used, total, bytes))
            (row_of("Power", card.watts(), card.watts_limit(), |watts| format!("{watts:.0} W")))
            @if !temperatures.is_empty() {
                dt { "Temperature" }
                dd {
                    @for (place, (sensor, celsius)) in temperatures.iter().enumerate() {
                        @if place > 0 { ", " }
                        (untrusted(sensor)) " " (format!("{celsius:.0} °C"))
                    }
                }
            }
            @if let Some(gpu) = whole.filter(|gpu| is_counted(gpu) || gpu.lease.is_some()) {
                dt { "Used by" }
                dd { (users(gpu, card, snapshot)) }
            }
        }
        (unread(&missing.failed, &first_of(&missing.faults)))
        (unread(&missing.absent, &card.why_absent()))
        // Where no process is listed at all, the section of processes says so once for all cards.
        @if whole.is_some_and(|gpu| !is_counted(&gpu)) && !snapshot.processes.is_empty() {
            (unread(&["used by"], "KFD's files do not say which processes use it"))
        }
    }
}

/// Says what is unknown, and why.
fn unread(names: &[&str], why: &str) -> Markup {
    html! {
        @if !names.is_empty() { p.unknown { "Unknown: " (names.join(", ")) ": " (untrusted(why)) "." } }
    }
}

/// The first reason, and how many more there are.
fn first_of(faults: &[&Fault]) -> String {
    match faults {
        [] => String::new(),
        [only] => only.reason.to_string(),
        [first, rest @ ..] => format!("{}; and {} more", first.reason, rest.len()),
    }
}

/// Bytes as a number with a point.
fn of(bytes: Option<u64>) -> Option<f64> {
    bytes.map(count)
}

/// A row with `12 W of 300 W` and a bar, or with what is known of the two.
fn row_of(name: &str, part: Option<f64>, whole: Option<f64>, shown: impl Fn(f64) -> String) -> Markup {
    let text = match (part, whole) {
        (Some(part), Some(whole)) => format!("{} of {}", shown(part), shown(whole)),
        (Some(part), None) => shown(part),
        (None, Some(whole)) => format!("up to {}", shown(whole)),
        (None, None) => return Markup::default(),
    };
    html! {
        dt { (name) }
        dd { (text) @if let (Some(part), Some(whole)) = (part, whole) { (bar(part, whole)) } }
    }
}

fn users(gpu: &Gpu, card: &Card, snapshot: &Snapshot) -> Markup {
    let processes = snapshot.process_count(card, gpu).and_then(|count| usize::try_from(count).ok());
    html! {
        (known(processes, |count| html! {
            @if count > 0 { (counted(count, "process", "processes")) }
            @else if snapshot.counts_only_compute(card, gpu) { "no compute process" }
            @else { "no process" }
        }))
        @if let Some(holder) = &gpu.lease { ", leased by " (container(holder)) }
    }
}

fn partitions(number: usize, card: &Card, snapshot: &Snapshot) -> Markup {
    let count = |gpu| snapshot.process_count(card, gpu);
    let used = card.gpus.iter().filter(|gpu| count(gpu).is_some_and(|count| count > 0)).count();
    let is_unknown = card.gpus.iter().any(|gpu| count(gpu).is_none());
    let leased = card.gpus.iter().filter(|gpu| gpu.lease.is_some()).count();
    let is_busy_known = card.gpus.iter().any(|gpu| card.busy_percent_of(gpu).is_some());
    let rows = html! { @for gpu in &card.gpus { (row(card, gpu, count(gpu), is_busy_known, leased > 0)) } };
    let caption = format!("{}, as containers get them", name(card));
    let mut heads = vec![("GPU", false), ("Partition", true)];
    heads.extend(is_busy_known.then_some(("Busy", true)));
    heads.extend([("Memory, total", true), ("Processes", true)]);
    heads.extend((leased > 0).then_some(("Lease", false)));
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
            // A suspended card says above that nothing is read of it.
            @if !is_busy_known && card.is_suspended() != Some(true) {
                (unread(&["busy"], &why_not_busy(card)))
            }
        }
    }
}

/// Why it is not known of any partition how busy it is: a partition's file or the card's would say so.
fn why_not_busy(card: &Card) -> String {
    let of_parts =
        card.gpus.iter().filter_map(|gpu| gpu.part.as_ref()).flat_map(|part| &part.readings.faults);
    let of_card = card.readings.faults.iter().filter(|fault| fault.explains(&["gpu_metrics"]));
    let faults: Vec<&Fault> = of_parts.chain(of_card).collect();
    if faults.is_empty() { card.why_absent() } else { first_of(&faults) }
}

fn row(card: &Card, gpu: &Gpu, processes: Option<u64>, is_busy_known: bool, has_leases: bool) -> Markup {
    html! {
        tr {
            th scope="row" { (known(gpu.index, |index| html! { (index) })) }
            td.number { (known(gpu.partition(), |partition| html! { (partition) })) }
            @if is_busy_known {
                td.number { (known(card.busy_percent_of(gpu), |busy| html! { (format!("{busy:.0} %")) })) }
            }
            td.number { (known(of(card.memory_total_bytes_of(gpu)), |total| html! { (bytes(total)) })) }
            td.number { (known(processes, |count| html! { (count) })) }
            @if has_leases {
                td { @match &gpu.lease { Some(holder) => { (container(holder)) }, None => { "none" } } }
            }
        }
    }
}
