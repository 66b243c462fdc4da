//! Shows the processes on the GPUs.

use std::cmp::Reverse;

use inventory::snapshot::{Owner, Process, Snapshot};
use maud::{Markup, html};
use telemetry::sample::count;

use super::words::{bytes, container, known, table, unknown, untrusted};

/// The most rows of processes: more would make the page slow to read.
const MOST: usize = 200;

pub(super) fn section(snapshot: &Snapshot) -> Markup {
    let mut processes: Vec<&Process> = snapshot.processes.iter().collect();
    // An unknown size sorts below every number.
    processes.sort_by_key(|process| Reverse(process.vram_bytes));
    let more = processes.len().saturating_sub(MOST);
    let rows = html! { @for process in processes.iter().take(MOST) { (row(process)) } };
    let heads = [("Name", false), ("PID", true), ("GPU", true), ("VRAM", true), ("Runs in", false)];
    html! {
        section aria-labelledby="processes" {
            h2 id="processes" { "Processes" }
            @if processes.is_empty() {
                p { (snapshot.no_process()) }
            } @else {
                div.sheet { (table("processes-caption", "Processes that use a GPU, by VRAM", &heads, &rows)) }
                @if more > 0 {
                    p { "And " (more) " more: see " a href="metrics" { "the metrics" } "." }
                }
            }
        }
    }
}

fn row(process: &Process) -> Markup {
    html! {
        tr {
            th scope="row" { (known(process.name.as_deref(), untrusted)) }
            td.number { (process.pid) }
            td.number { (known(process.gpu.index, |gpu| html! { (gpu) })) }
            td.number { (known(process.vram_bytes, |size| html! { (bytes(count(size))) })) }
            td { (place(process)) }
        }
    }
}

fn place(process: &Process) -> Markup {
    let Owner { container: holder, unit, .. } = &process.owner;
    let pod = process.owner.pod_path();
    html! {
        @match (&pod, holder, unit) {
            (Some(pod), Some(holder), _) => { "pod " (untrusted(pod)) ", container " (container(holder)) },
            (Some(pod), None, _) => { "pod " (untrusted(pod)) },
            (None, Some(holder), _) => { "container " (container(holder)) },
            (None, None, Some(unit)) => { (untrusted(unit)) },
            (None, None, None) => { (unknown()) },
        }
    }
}
