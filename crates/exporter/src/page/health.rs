//! How well the machine and its cards are: a sign, a word and a colour, and the reasons.

use allocation::health::{Deduction, GpuHealth, State};
use maud::{Markup, html};
use telemetry::overview::{Card, Overview};

use super::words::{counted, foreign, moment};

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

/// In few words, for the title: `1 of 8 GPUs unhealthy`.
pub(super) fn worst(overview: &Overview) -> String {
    let cards = overview.cards.len();
    let Some(worst) = overview.cards.iter().map(Judgement::of).max() else { return "no AMD GPU".to_owned() };
    let count = overview.cards.iter().filter(|card| Judgement::of(card) == worst).count();
    let gpus = counted(cards, "GPU", "GPUs");
    if count == cards {
        format!("{gpus} {}", worst.word())
    } else {
        format!("{count} of {gpus} {}", worst.word())
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

/// Why a card is judged so, and what containers do not get for that.
pub(super) fn reasons(card: &Card, has_daemon: bool) -> Markup {
    let Some(GpuHealth { deductions, unknown, quarantine, leftover, .. }) = &card.health else {
        let text = if has_daemon {
            "The daemon has not judged it in the last minute."
        } else {
            "rocworker's daemon judges GPUs, and it says nothing here."
        };
        return html! { p.reasons { (text) } };
    };
    if deductions.is_empty() && unknown.is_empty() && quarantine.is_none() && leftover.is_none() {
        return Markup::default();
    }
    html! {
        ul.reasons {
            @if let Some(quarantine) = quarantine {
                li {
                    strong { "In quarantine" } " since " (moment(quarantine.since))
                    ": containers do not get it."
                    @if deductions.iter().all(|it| it.reason != quarantine.reason) {
                        " " (foreign(&quarantine.reason))
                    }
                }
            }
            @for Deduction { rule, points, reason, evidence } in deductions {
                li {
                    (foreign(reason)) " (" span.code { (foreign(rule)) } ", −" (points) ")"
                    span.soft { (foreign(evidence)) }
                }
            }
            @for reason in unknown { li { "Not judged: " (foreign(reason)) } }
            @if let Some(leftover) = leftover { li { "Not leased just now: " (foreign(leftover)) } }
        }
    }
}
