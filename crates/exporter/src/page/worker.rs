//! Shows what rocworker's daemon publishes: leases, drift, last changes.

use inventory::published::{Change, Drift, DriftState, DriftingPath, Lease, Published};
use maud::{Markup, html};

use super::words::{container, counted, table, time, untrusted};

pub(super) fn sections(daemon: Option<&Published>) -> Markup {
    let Some(daemon) = daemon else { return no_daemon() };
    html! {
        (section("leases", "Leases", &known_or(daemon.leases.as_deref(), "rocworker lease list", leases)))
        (section("drift", "Drift", &drift(daemon)))
        (section("changes", "Last changes", &known_or(daemon.changes.as_deref(), "rocworker history", changes)))
    }
}

fn section(id: &str, heading: &str, content: &Markup) -> Markup {
    html! { section aria-labelledby=(id) { h2 id=(id) { (heading) } (content) } }
}

/// `command`: what says why the daemon does not know.
fn known_or<T>(list: Option<&[T]>, command: &str, shown: impl FnOnce(&[T]) -> Markup) -> Markup {
    match list {
        Some(list) => shown(list),
        None => html! { p { "Unknown to rocworker's daemon: " code { (command) } " says why." } },
    }
}

fn no_daemon() -> Markup {
    section(
        "leases",
        "Leases, drift and last changes",
        &html! {
            p { "Unknown: rocworker's daemon publishes nothing, or its file is more than 30 seconds old." }
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
            tr { th.code scope="row" { (untrusted(gpu)) } td { (container(holder)) } }
        }
    };
    let heads = [("Node", false), ("Container", false)];
    html! {
        @if leases.is_empty() { p { "No container holds a GPU exclusively." } }
        @else { div.sheet { (table("leases-caption", "Containers that hold a GPU exclusively", &heads, &rows)) } }
    }
}

fn drift(daemon: &Published) -> Markup {
    let Published { drift: counts, drifting: paths, config_in_force, problems, .. } = daemon;
    let Drift { differs, contested, blocked, failed, pending_restarts } = *counts;
    let restarts = if pending_restarts == 1 { "restart pending" } else { "restarts pending" };
    let states = [
        (failed, "failed"),
        (contested, "contested"),
        (blocked, "blocked"),
        (differs, "differing"),
        (pending_restarts, restarts),
    ];
    let counts: Vec<String> = states
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let is_in_sync = counts.is_empty() && *config_in_force == Some(true) && *problems == Some(0);
    let status = html! { ": see " code { "rocworker status" } "." };
    let total = [differs, contested, blocked, failed].into_iter().fold(0, u64::saturating_add);
    let unlisted = usize::try_from(total).unwrap_or(usize::MAX).saturating_sub(paths.len());
    html! {
        @if *config_in_force == Some(false) {
            p { strong { "The configuration file is not in force" } (status) }
        }
        @match problems {
            None | Some(0) => {},
            Some(1) => p { strong { "1 configured part is not applied" } (status) },
            Some(problems) => p { strong { (problems) " configured parts are not applied" } (status) },
        }
        @if is_in_sync { p { "In sync: everything is as configured." } }
        @else if counts.is_empty() { p { "No managed path differs, and no restart is pending." } }
        @else { p { (counts.join(", ")) "." } }
        @if !paths.is_empty() {
            ul.sheet.entries {
                @for DriftingPath { path, state, reason } in paths {
                    li {
                        span.code { (untrusted(path)) } " " strong { (word(*state)) }
                        p { (untrusted(reason)) }
                    }
                }
            }
        }
        @if unlisted > 0 {
            p { (counted(unlisted, "entry is", "entries are")) " not listed here" (status) }
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
                    li { (time(*at)) " " strong.code { (untrusted(command)) } p { (untrusted(text)) } }
                }
            }
        }
    }
}
