//! How well the machine and its cards are: a sign, a word and a colour, and the reasons.

use allocation::health::{Deduction, GpuHealth, State};
use maud::{Markup, html};
use telemetry::overview::{Card, Overview};

use super::words::{counted, time, untrusted};

/// From the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Judgement {
    Healthy,
    Unknown,
    Degraded,
    Unhealthy,
}

impl Judgement {
    pub(super) fn of(card: &Card) -> Self {
        match card.health.as_ref().map(|health| health.state) {
            Some(State::Healthy) => Self::Healthy,
            Some(State::Degraded) => Self::Degraded,
            Some(State::Unhealthy) => Self::Unhealthy,
            Some(State::Unknown) | None => Self::Unknown,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Unknown => "health unknown",
            Self::Degraded => "degraded",
            Self::Unhealthy => "unhealthy",
        }
    }

    fn look(self) -> (&'static str, &'static str) {
        match self {
            Self::Healthy => ("good", "✓"),
            Self::Unknown => ("none", "?"),
            Self::Degraded => ("fair", "▲"),
            Self::Unhealthy => ("bad", "✕"),
        }
    }
}

/// A word in its colour, with a sign for who sees no colours.
pub(super) fn badge(judgement: Judgement, text: &str) -> Markup {
    let (class, sign) = judgement.look();
    html! { span.state.(class) { span aria-hidden="true" { (sign) " " } (text) } }
}

/// The cards by their state, the worst first: `1 unhealthy`, `7 healthy`.
pub(super) fn counts(overview: &Overview) -> Vec<(Judgement, String)> {
    let states = [Judgement::Unhealthy, Judgement::Degraded, Judgement::Unknown, Judgement::Healthy];
    let count = |state: Judgement| overview.cards.iter().filter(|card| Judgement::of(card) == state).count();
    let counted = states.into_iter().map(|state| (state, count(state))).filter(|(_, count)| *count > 0);
    counted.map(|(state, count)| (state, format!("{count} {}", state.word()))).collect()
}

/// In few words, for the title: `1 of 8 cards unhealthy`, `health unknown for 8 cards`.
pub(super) fn worst(overview: &Overview) -> String {
    let cards = overview.cards.len();
    let Some(worst) = overview.cards.iter().map(Judgement::of).max() else {
        return if overview.may_lack_cards { "GPUs unknown" } else { "no AMD GPU" }.to_owned();
    };
    let count = overview.cards.iter().filter(|card| Judgement::of(card) == worst).count();
    let all = counted(cards, "card", "cards");
    let which = if count == cards { all } else { format!("{count} of {all}") };
    match worst {
        Judgement::Unknown => format!("{} for {which}", worst.word()),
        _ => format!("{which} {}", worst.word()),
    }
}

/// Beside a card's name.
pub(super) fn of_card(card: &Card) -> Markup {
    let judgement = Judgement::of(card);
    let score = card.health.as_ref().and_then(|health| health.score);
    let text = match score {
        Some(score) => format!("{}, {score} of 100", judgement.word()),
        None => judgement.word().to_owned(),
    };
    badge(judgement, &text)
}

/// Whether the daemon judges any card.
pub(super) fn is_published(overview: &Overview) -> bool {
    overview.cards.iter().any(|card| card.health.is_some())
}

/// Why a card is judged so, and what containers do not get for that.
pub(super) fn reasons(card: &Card, is_published: bool) -> Markup {
    let Some(GpuHealth { deductions, unknown, quarantine, leftover, .. }) = &card.health else {
        return html! {
            @if is_published { p.reasons { "The daemon has not judged it in the last minute." } }
        };
    };
    if deductions.is_empty() && unknown.is_empty() && quarantine.is_none() && leftover.is_none() {
        return Markup::default();
    }
    html! {
        ul.reasons {
            @if let Some(quarantine) = quarantine {
                li {
                    strong { "Quarantined" } " since " (time(quarantine.since))
                    ". With " code { "wrapper.quarantine" } ", no container gets it."
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
