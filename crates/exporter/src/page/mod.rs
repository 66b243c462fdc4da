//! The page at `/`: what the GPUs do, for people. One document without scripts, whose only resource is the style in it.

mod gpus;
mod health;
mod processes;
#[cfg(test)]
mod tests;
mod words;
mod worker;

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use inventory::snapshot::Snapshot;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use words::{plain, time, untrusted};

/// How many reasons for missing values are listed at most.
const MOST: usize = 50;

const STYLE: &str = include_str!("style.css");

/// Content-Security-Policy: whatever a name on the page may be, a browser runs nothing and loads nothing.
pub(crate) static POLICY: LazyLock<String> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    )
});

/// The interval of the link to a page that loads itself again.
const INTERVAL: u16 = 5;

/// `host`: what the machine is called. `refresh`: after how many seconds a browser loads the page again.
pub(crate) fn render(snapshot: &Snapshot, host: Option<&str>, refresh: Option<u16>) -> String {
    let name = host.map_or_else(|| "this machine".to_owned(), plain);
    let title = format!("{name}: {}", health::worst(snapshot));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                @if let Some(seconds) = refresh { meta http-equiv="refresh" content=(seconds); }
                // Browsers ask for /favicon.ico otherwise.
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { (beginning(snapshot, &name, refresh)) }
                main {
                    (gpus::section(snapshot))
                    (processes::section(snapshot))
                    (worker::sections(snapshot.daemon.as_ref()))
                    (missing(&snapshot.unknown()))
                }
                footer {
                    p {
                        "rocworker-exporter " (env!("CARGO_PKG_VERSION")) ". For Prometheus: "
                        a href="metrics" { "metrics" } "."
                    }
                }
            }
        }
    }
    .into_string()
}

fn beginning(snapshot: &Snapshot, name: &str, refresh: Option<u16>) -> Markup {
    html! {
        h1 { (name) }
        @if !snapshot.cards.is_empty() { (health::of_all(snapshot)) }
        p.soft {
            "Read at " (time(snapshot.taken_at_seconds())) ". "
            @match refresh {
                Some(seconds) => { "Loads again every " (seconds) " s: " a href="." { "stop" } },
                None => {
                    a href="." { "Refresh" } ", or "
                    a href=(format!("?refresh={INTERVAL}")) { "every " (INTERVAL) " s" }
                },
            }
        }
    }
}

fn missing(reasons: &[String]) -> Markup {
    let more = reasons.len().saturating_sub(MOST);
    html! {
        @if !reasons.is_empty() {
            section aria-labelledby="missing" {
                h2 id="missing" { "What is missing, and why" }
                ul { @for reason in reasons.iter().take(MOST) { li { (untrusted(reason)) } } }
                @if more > 0 { p { "And " (more) " more." } }
            }
        }
    }
}
