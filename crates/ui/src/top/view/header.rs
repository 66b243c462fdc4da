//! The first line, the last line, and above it the status of the reading.

use printable::{counted, cut, printable};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::{BOLD, DIM};
use crate::top::state::{Focus, State};

/// The key that the last line has however narrow the terminal is.
const HELP: &str = "? help";

/// Separates two parts of a line.
const GAP: usize = 2;

/// A part of the header, and the narrower the terminal, the lower the number has to be.
type Part = (u8, String);

/// The first line: host, driver, GPUs, daemon, pace and time, as many as fit.
pub(super) fn header(state: &State, width: u16) -> Line<'static> {
    let mut parts: Vec<Part> = vec![(0, "rocworker top".to_owned())];
    if let Some(reading) = &state.reading {
        let snapshot = &reading.snapshot;
        parts.extend(reading.host.iter().map(|host| (4, printable(host))));
        parts.extend(
            snapshot.driver_version.iter().map(|version| (6, format!("amdgpu {}", printable(version)))),
        );
        let gpus: usize = snapshot.cards.iter().map(|card| card.gpus.len()).sum();
        let cards = snapshot.cards.len();
        parts.push((
            3,
            match gpus == cards {
                true => counted(gpus, "GPU"),
                false => format!("{} on {}", counted(gpus, "GPU"), counted(cards, "card")),
            },
        ));
        parts.push((5, daemon(state)));
    }
    parts.push(match state.is_paused {
        true => (1, "PAUSED".to_owned()),
        false => (7, format!("every {} s", state.interval.as_secs_f64())),
    });
    parts.extend(state.reading.as_ref().map(|reading| (2, time(reading.snapshot.taken_at_seconds()))));
    while length(&parts) > usize::from(width) {
        let Some(last) = parts.iter().map(|(weight, _)| *weight).max().filter(|weight| *weight > 0) else {
            break;
        };
        parts.retain(|(weight, _)| *weight != last);
    }
    let texts: Vec<String> = parts.into_iter().map(|(_, text)| text).collect();
    let line = cut(&texts.join("  "), usize::from(width));
    Line::from(Span::styled(format!("{line:<width$}", width = usize::from(width)), BOLD))
}

fn length(parts: &[Part]) -> usize {
    parts.iter().map(|(_, text)| text.width() + GAP).sum::<usize>().saturating_sub(GAP)
}

/// What the daemon publishes here.
fn daemon(state: &State) -> String {
    let Some(snapshot) = state.snapshot() else { return String::new() };
    let is_judged = snapshot.cards.iter().any(|card| card.health.is_some());
    match &snapshot.daemon {
        Some(daemon) => {
            let drift = daemon.drift;
            match drift.differs + drift.contested + drift.blocked + drift.failed {
                0 if daemon.config_in_force == Some(false) || daemon.problems > Some(0) => {
                    "daemon: has problems".to_owned()
                }
                0 => "daemon: in sync".to_owned(),
                1 => "daemon: 1 path drifts".to_owned(),
                paths => format!("daemon: {paths} paths drift"),
            }
        }
        None if is_judged => "daemon: health only".to_owned(),
        None => "daemon: no data".to_owned(),
    }
}

/// The time of day in UTC: the machine may be in any time zone.
fn time(seconds: u64) -> String {
    let text = allocation::rfc3339(seconds);
    format!("{} UTC", text.get(11..19).unwrap_or_default())
}

/// What is wrong with the reading; `None` where nothing is.
pub(super) fn status(state: &State) -> Option<String> {
    if let Some(waiting) = state.waiting {
        return Some(format!("The reading under way has taken {} s: a file may hang.", waiting.as_secs()));
    }
    if let Some(failure) = &state.failure {
        return Some(printable(failure));
    }
    let reading = state.reading.as_ref()?;
    let unknown = &reading.snapshot.unknown();
    let first = unknown.first().map(|first| printable(first));
    match (reading.stuck, first) {
        (0, None) => None,
        (0, Some(first)) if unknown.len() == 1 => Some(format!("Unknown: {first}")),
        (0, Some(first)) => Some(format!("{} unknown (u lists them): {first}", unknown.len())),
        (stuck, first) => Some(format!("{} not come back: {}", have(stuck), first.unwrap_or_default())),
    }
}

fn have(stuck: usize) -> String {
    if stuck == 1 { "1 read has".to_owned() } else { format!("{stuck} reads have") }
}

/// The filters that hide processes, cut to `width` columns; `None` where all are shown.
fn narrowed(state: &State, width: usize) -> Option<String> {
    const ALL: &str = " (Esc: all)";
    let filter = (!state.filter.is_empty()).then(|| format!("/{}", printable(&state.filter)));
    let only = state.only.as_ref().map(|only| format!("only {}", state.label(only)));
    let all: Vec<String> = [only, filter].into_iter().flatten().collect();
    (!all.is_empty()).then(|| cut(&all.join(" "), width.saturating_sub(ALL.len())) + ALL)
}

/// The last line: the filter while it is typed, else the keys that matter here.
pub(super) fn keys(state: &State, width: u16) -> Line<'static> {
    let width = usize::from(width);
    if state.is_typing {
        // The end of a long filter is what is being typed.
        let filter = printable(&state.filter);
        let room = width.saturating_sub(3);
        let mut ends = filter.char_indices().filter_map(|(at, _)| filter.get(at..));
        let shown = ends.find(|end| end.width() <= room).unwrap_or_default();
        return Line::from(format!("/{shown}_"));
    }
    let pause = if state.is_paused { "p resume" } else { "p pause" };
    let mut all = vec![HELP, "q quit", pause, "Tab switch", "/ filter", "s sort"];
    match state.focus {
        Focus::Gpus => {
            all.extend(
                state.is_folded().map(|is_folded| if is_folded { "Space unfold" } else { "Space fold" }),
            );
            all.push("Enter show its processes");
        }
        Focus::Processes => all.extend(["r reverse", "+ slow down", "- speed up"]),
    }
    if state.snapshot().is_some_and(|snapshot| !snapshot.unknown().is_empty()) {
        all.push("u list unknown");
    }
    // The first key stays, however long the filter is.
    let mut text = narrowed(state, width.saturating_sub(HELP.len() + GAP)).unwrap_or_default();
    for key in all {
        let next = if text.is_empty() { key.to_owned() } else { format!("{text}  {key}") };
        if next.width() > width {
            break;
        }
        text = next;
    }
    Line::from(Span::styled(text, DIM))
}
