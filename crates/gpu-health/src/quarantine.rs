//! Decides how long a GPU stays in quarantine after it was unhealthy.

use inventory::health::{Deduction, Quarantine, State};

/// The quarantine from now on. A state that is unknown neither begins nor ends one. `is_judged`: whether the rule of an id
/// could be judged; without it nothing says that its cause is gone.
pub(crate) fn next(
    last: Option<&Quarantine>,
    state: State,
    deductions: &[Deduction],
    is_judged: impl Fn(&String) -> bool,
    now: u64,
    hold_s: u64,
) -> Option<Quarantine> {
    match state {
        State::Unhealthy => {
            // Of deductions with equal points the first counts.
            let worst = deductions.iter().rev().max_by_key(|deduction| deduction.points);
            let reason = worst.map_or_else(String::new, |worst| worst.reason.clone());
            let since = last.map_or(now, |last| last.since.min(now));
            let is_worst = |deduction: &&Deduction| worst.is_some_and(|it| it.points == deduction.points);
            let rules = deductions.iter().filter(is_worst).map(|deduction| deduction.rule.clone()).collect();
            Some(Quarantine { since, unhealthy_at: now, reason, rules })
        }
        State::Unknown => last.cloned(),
        State::Healthy | State::Degraded => {
            // A clock that was set back makes the hold begin anew, and not last until that time comes again.
            let last = last.map(|last| Quarantine {
                since: last.since.min(now),
                unhealthy_at: last.unhealthy_at.min(now),
                ..last.clone()
            });
            last.filter(|last| now - last.unhealthy_at < hold_s || !last.rules.iter().all(is_judged))
        }
    }
}
