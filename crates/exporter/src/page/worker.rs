//! What rocworker's daemon says: leases, drift, last changes.

use maud::{Markup, html};
use telemetry::overview::{Change, Daemon};
use telemetry::published::{Drift, DriftState, DriftingPath, Lease};

use super::words::{container, counted, foreign, moment, table};

pub(super) fn sections(daemon: Option<&Daemon>) -> Markup {
    let Some(daemon) = daemon else { return nothing_said() };
    html! {
        (section("leases", "Leases", &leases(&daemon.leases)))
        (section("drift", "Drift", &drift(daemon.drift, &daemon.drifting)))
        (section("changes", "Last changes", &changes(&daemon.changes)))
    }
}

fn section(id: &str, heading: &str, content: &Markup) -> Markup {
    html! { section aria-labelledby=(id) { h2 id=(id) { (heading) } (content) } }
}

fn nothing_said() -> Markup {
    section(
        "leases",
        "Leases, drift and last changes",
        &html! {
            p { "Unknown: rocworker's daemon says nothing, or what it wrote is more than 30 seconds old." }
            p {
                "If this machine is set up, " code { "systemctl status rocworker" } " says why; if it is not, "
                code { "rocworker apply" } " sets it up."
            }
        },
    )
}

fn leases(leases: &[Lease]) -> Markup {
    let rows = html! {
        @for Lease { gpu, container: holder } in leases {
            tr { th.code scope="row" { (foreign(gpu)) } td { (container(holder)) } }
        }
    };
    let heads = [("Node", false), ("Container", false)];
    html! {
        @if leases.is_empty() { p { "No container holds a GPU exclusively." } }
        @else { div.sheet { (table("leases-caption", "Containers that hold a GPU exclusively", &heads, &rows)) } }
    }
}

fn drift(counts: Drift, paths: &[DriftingPath]) -> Markup {
    let Drift { differs, contested, blocked, failed, pending_restarts } = counts;
    let states = [
        (failed, "failed"),
        (contested, "contested"),
        (blocked, "blocked"),
        (differs, "differing"),
        (pending_restarts, "waiting for a restart"),
    ];
    let said: Vec<String> = states
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let total = [differs, contested, blocked, failed].into_iter().fold(0, u64::saturating_add);
    let unlisted = usize::try_from(total).unwrap_or(usize::MAX).saturating_sub(paths.len());
    html! {
        @if said.is_empty() { p { "In sync: everything is as configured." } }
        @else { p { (said.join(", ")) "." } }
        @if !paths.is_empty() {
            ul.sheet.entries {
                @for DriftingPath { path, state, reason } in paths {
                    li {
                        span.code { (foreign(path)) } " " strong { (word(*state)) }
                        p { (foreign(reason)) }
                    }
                }
            }
        }
        @if unlisted > 0 {
            p { (counted(unlisted, "entry is", "entries are")) " not listed here: see " code { "rocworker status" } "." }
        }
    }
}

fn word(state: DriftState) -> &'static str {
    match state {
        DriftState::Differs => "differs",
        DriftState::Contested => "contested",
        DriftState::Blocked => "blocked",
        DriftState::Failed => "failed",
    }
}

fn changes(changes: &[Change]) -> Markup {
    html! {
        @if changes.is_empty() { p { "rocworker has changed nothing here." } }
        @else {
            ul.sheet.entries {
                @for Change { at, command, text } in changes {
                    li { (moment(*at)) " " strong.code { (foreign(command)) } p { (foreign(text)) } }
                }
            }
        }
    }
}
