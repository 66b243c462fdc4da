//! Who uses the GPUs.

use maud::{Markup, html};
use telemetry::overview::{Overview, Process};

use super::words::{bytes, container, foreign, known, table};

/// More would make the page slow to read; /metrics has all.
const MOST: usize = 200;

pub(super) fn section(overview: &Overview) -> Markup {
    let processes = &overview.processes;
    let more = processes.len().saturating_sub(MOST);
    let rows = html! { @for process in processes.iter().take(MOST) { (row(process)) } };
    let heads = [("Name", false), ("PID", true), ("GPU", true), ("VRAM", true), ("Runs in", false)];
    html! {
        section aria-labelledby="processes" {
            h2 id="processes" { "Processes" }
            @if processes.is_empty() {
                p { "No process that uses a GPU is known." }
            } @else {
                div.sheet { (table("processes-caption", "Processes that use a GPU", &heads, &rows)) }
                @if more > 0 {
                    p { "And " (more) " more: " a href="metrics" { "the metrics" } " list each." }
                }
            }
        }
    }
}

fn row(process: &Process) -> Markup {
    html! {
        tr {
            th scope="row" { (known(process.name.as_deref(), foreign)) }
            td.number { (process.pid) }
            td.number { (known(process.gpu, |gpu| html! { (gpu) })) }
            td.number { (known(process.vram_bytes, |size| html! { (bytes(size)) })) }
            td { (place(process)) }
        }
    }
}

fn place(process: &Process) -> Markup {
    let Process { container: holder, pod, unit, .. } = process;
    html! {
        @match (pod, holder, unit) {
            (Some(pod), Some(holder), _) => { "pod " (foreign(pod)) ", container " (container(holder)) },
            (Some(pod), None, _) => { "pod " (foreign(pod)) },
            (None, Some(holder), _) => { "container " (container(holder)) },
            (None, None, Some(unit)) => { (foreign(unit)) },
            (None, None, None) => { "no container" },
        }
    }
}
