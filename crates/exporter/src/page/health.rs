//! Shows the health of the machine and its cards: a sign, a word and a colour, and the reasons.

use inventory::health::{Deduction, GpuHealth, State};
use inventory::snapshot::{Card, Snapshot};
use maud::{Markup, html};
use telemetry::health::why_not_quarantined;

use super::words::{counted, time, untrusted};

fn state(card: &Card) -> State {
    card.health.as_ref().map_or(State::Unknown, |health| health.state)
}

fn word(state: State) -> &'static str {
    match state {
        State::Unknown => "health unknown",
        state => state.name(),
    }
}

/// The text in the state's colour, with a sign for who sees no colours.
fn badge(state: State, text: &str) -> Markup {
    let (class, sign) = match state {
        State::Healthy => ("good", "✓"),
        State::Unknown => ("none", "?"),
        State::Degraded => ("fair", "▲"),
        State::Unhealthy => ("bad", "✕"),
    };
    html! { span.state.(class) { span aria-hidden="true" { (sign) " " } (text) } }
}

/// The number of cards in each state, the worst state first.
fn counts(snapshot: &Snapshot) -> impl Iterator<Item = (State, usize)> {
    let count = move |of| snapshot.cards.iter().filter(|card| state(card) == of).count();
    let states = [State::Unhealthy, State::Degraded, State::Unknown, State::Healthy];
    states.into_iter().map(move |state| (state, count(state))).filter(|(_, count)| *count > 0)
}

/// The cards by their state: `1 unhealthy`, `7 healthy`.
pub(super) fn of_all(snapshot: &Snapshot) -> Markup {
    html! {
        ul.overall aria-label="Health of the cards" {
            @for (state, count) in counts(snapshot) { li { (badge(state, &format!("{count} {}", word(state)))) } }
        }
    }
}

/// The worst state in few words, for the title: `1 of 8 cards unhealthy`, `health unknown for 8 cards`.
pub(super) fn worst(snapshot: &Snapshot) -> String {
    let Some((worst, count)) = counts(snapshot).next() else {
        return if snapshot.may_lack_cards() { "GPUs unknown" } else { "no AMD GPU" }.to_owned();
    };
    let cards = snapshot.cards.len();
    let all = counted(cards, "card", "cards");
    let which = if count == cards { all } else { format!("{count} of {all}") };
    match worst {
        State::Unknown => format!("{} for {which}", word(worst)),
        _ => format!("{which} {}", word(worst)),
    }
}

/// The health that stands beside a card's name.
pub(super) fn of_card(card: &Card) -> Markup {
    let state = state(card);
    let text = match card.health.as_ref().and_then(|health| health.score) {
        Some(score) => format!("{}, {score} of 100", word(state)),
        None => word(state).to_owned(),
    };
    badge(state, &text)
}

/// Why a card is judged so, and what containers do not get for that.
pub(super) fn reasons(card: &Card, snapshot: &Snapshot) -> Markup {
    let Some(GpuHealth { deductions, unknown, quarantine, leftover, .. }) = &card.health else {
        return html! {
            @if snapshot.publishes_health() { p.reasons { "The daemon has not judged it in the last minute." } }
        };
    };
    if deductions.is_empty() && unknown.is_empty() && quarantine.is_none() && leftover.is_none() {
        return Markup::default();
    }
    html! {
        ul.reasons {
            @if let Some(quarantine) = quarantine {
                li {
                    @match why_not_quarantined(snapshot.quarantine_enforced) {
                        None => {
                            strong { "Quarantined" } " since " (time(quarantine.since)) ": no container gets it."
                        },
                        Some(why) => {
                            strong { "Would be quarantined" } ", but " (why) ": since " (time(quarantine.since)) "."
                        },
                    }
                    @if deductions.iter().all(|it| it.reason != quarantine.reason) {
                        " " (untrusted(&quarantine.reason))
                    }
                }
            }
            @for Deduction { rule, points, reason, evidence } in deductions {
                li {
                    (untrusted(reason)) " (" span.code { (untrusted(rule)) } ", −" (points) ")"
                    span.soft { (untrusted(evidence)) }
                }
            }
            @for reason in unknown { li { "Not judged: " (untrusted(reason)) } }
            @if let Some(leftover) = leftover { li { "Cannot be leased: " (untrusted(leftover)) } }
        }
    }
}
