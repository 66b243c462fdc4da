//! What the journal says of a GPU whose state has changed: once.

use inventory::health::{GpuHealth, Health, State};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A GPU is unhealthy now.
    Worse(String),
    Other(String),
}

/// What has changed between two judgements. A GPU that was never judged before counts as healthy. `lacks`: why the
/// wrapper keeps containers off no GPU; `None` where it does.
pub(super) fn between(before: Option<&Health>, now: &Health, lacks: Option<&str>) -> Vec<Change> {
    let (begun, ended) = match lacks {
        None => ("is quarantined now".to_owned(), "is no longer quarantined"),
        Some(why) => (format!("would be quarantined now, but {why}"), "would no longer be quarantined"),
    };
    let before = |gpu: &GpuHealth| {
        let found = before.and_then(|health| health.gpus.iter().find(|it| it.pci == gpu.pci));
        found.map_or((State::Healthy, None, None), |gpu| {
            (gpu.state, gpu.quarantine.as_ref(), gpu.leftover.as_ref())
        })
    };
    let mut changes = Vec::new();
    for gpu in &now.gpus {
        let (state, quarantine, leftover) = before(gpu);
        if gpu.state != state {
            changes.push(state_of(gpu));
        }
        match (&gpu.quarantine, quarantine) {
            (Some(now), None) => {
                changes.push(Change::Other(format!("GPU {} {begun}: {}", gpu.pci, now.reason)));
            }
            (None, Some(_)) => {
                changes.push(Change::Other(format!("GPU {} {ended}", gpu.pci)));
            }
            _ => {}
        }
        match (&gpu.leftover, leftover) {
            (Some(text), None) => changes.push(Change::Worse(format!("GPU {}: {text}", gpu.pci))),
            (None, Some(_)) => changes.push(Change::Other(format!("GPU {}: nothing is left on it", gpu.pci))),
            _ => {}
        }
    }
    changes
}

fn state_of(gpu: &GpuHealth) -> Change {
    let why = match gpu.state {
        State::Unknown => gpu.unknown.join("; "),
        _ => {
            let reasons = gpu.deductions.iter().map(|it| format!("{} ({})", it.reason, it.evidence));
            reasons.collect::<Vec<_>>().join("; ")
        }
    };
    let score = gpu.score.map(|score| format!(", score {score}")).unwrap_or_default();
    let name = match gpu.state {
        State::Unknown => "of unknown health",
        state => state.name(),
    };
    let why = if why.is_empty() { why } else { format!(": {why}") };
    let text = format!("GPU {} is {name} now{score}{why}", gpu.pci);
    if gpu.state == State::Unhealthy { Change::Worse(text) } else { Change::Other(text) }
}

#[cfg(test)]
mod tests {
    use inventory::PciAddress;
    use inventory::health::{Deduction, Quarantine};

    use super::*;

    const PCI: &str = "0000:03:00.0";

    fn gpu(state: State, leftover: Option<&str>) -> GpuHealth {
        let deduction = Deduction {
            rule: "hang-now".to_owned(),
            points: 60,
            reason: "The GPU hangs.".to_owned(),
            evidence: "ring gfx timeout".to_owned(),
        };
        GpuHealth {
            pci: PciAddress::parse(PCI).unwrap(),
            state,
            score: (state != State::Unknown).then_some(if state == State::Healthy { 100 } else { 40 }),
            hang: None,
            deductions: if state == State::Unhealthy { vec![deduction] } else { Vec::new() },
            unknown: if state == State::Unknown { vec!["It cannot be read.".to_owned()] } else { Vec::new() },
            quarantine: None,
            leftover: leftover.map(str::to_owned),
        }
    }

    #[test]
    fn a_change_is_said_once_with_its_reasons() {
        let unhealthy = "GPU 0000:03:00.0 is unhealthy now, score 40: The GPU hangs. (ring gfx timeout)";
        let unknown = "GPU 0000:03:00.0 is of unknown health now: It cannot be read.";
        let healthy = "GPU 0000:03:00.0 is healthy now, score 100";
        let worse = |text: &str| Change::Worse(text.to_owned());
        let other = |text: &str| Change::Other(text.to_owned());
        let quarantined = "GPU 0000:03:00.0 is quarantined now: The GPU hangs.";
        let held = |state| {
            let reason = "The GPU hangs.".to_owned();
            GpuHealth {
                quarantine: Some(Quarantine { since: 1, unhealthy_at: 1, reason, rules: Vec::new() }),
                ..gpu(state, None)
            }
        };
        let well = || gpu(State::Healthy, None);
        for (before, now, expected) in [
            (None, well(), vec![]),
            (None, gpu(State::Unhealthy, None), vec![worse(unhealthy)]),
            (Some(well()), gpu(State::Unhealthy, None), vec![worse(unhealthy)]),
            (Some(gpu(State::Unhealthy, None)), gpu(State::Unhealthy, None), vec![]),
            (Some(gpu(State::Unhealthy, None)), well(), vec![other(healthy)]),
            (Some(well()), gpu(State::Unknown, None), vec![other(unknown)]),
            (Some(well()), held(State::Unhealthy), vec![worse(unhealthy), other(quarantined)]),
            (Some(held(State::Unhealthy)), held(State::Healthy), vec![other(healthy)]),
            (Some(held(State::Healthy)), held(State::Healthy), vec![]),
            (Some(held(State::Healthy)), well(), vec![other("GPU 0000:03:00.0 is no longer quarantined")]),
            (Some(well()), gpu(State::Healthy, Some("Left.")), vec![worse("GPU 0000:03:00.0: Left.")]),
            (
                Some(gpu(State::Healthy, Some("Left."))),
                well(),
                vec![other("GPU 0000:03:00.0: nothing is left on it")],
            ),
        ] {
            let health = |gpu: GpuHealth| Health { gpus: vec![gpu], ..Health::default() };
            let before = before.map(health);
            let now = health(now);
            assert_eq!(between(before.as_ref(), &now, None), expected, "{before:?} {now:?}");
        }
        let health = |gpu: GpuHealth| Health { gpus: vec![gpu], ..Health::default() };
        let (well, held) = (health(well()), health(held(State::Healthy)));
        let would_be = "GPU 0000:03:00.0 would be quarantined now, but it is off: The GPU hangs.";
        assert_eq!(between(Some(&well), &held, Some("it is off")), [other(would_be)]);
        let no_longer = "GPU 0000:03:00.0 would no longer be quarantined";
        assert_eq!(between(Some(&held), &well, Some("it is off")), [other(no_longer)]);
    }
}
