//! How a machine stands after an apply, as its unit's status tells it.

use reconcile::{Effect, Outcome, Settled};

use super::hindrance::hindrance;
use super::machine::{Failure, Machine};
use super::options::{Mode, Options, Role};
use super::workload::UnitSummary;
use crate::config::{ComputeRuntime, Config};
use crate::facts::Facts;
use crate::memory::Memory;
use crate::run;
use crate::selection::{is_off, select};

/// Reads the machine again: the apply may have changed what is true.
pub(super) fn unit_summary(
    machine: &Machine<'_>,
    options: &Options,
    role: Role,
    config: &Config,
    applied: &run::Outcome,
) -> Result<UnitSummary, Failure> {
    let memory = Memory::read(machine.root).map_err(Failure::installation)?;
    let facts = Facts::read(machine.root).remembering(memory.chosen);
    let selection = select(config, &facts).map_err(|error| Failure::Config(error.to_string()))?;
    let gpus = selection.gpus.len();
    let off = is_off(config).then_some(match config.compute_runtime {
        ComputeRuntime::Cuda => "cuda",
        _ => "none",
    });
    let is_hindered = gpus == 0 && off.is_none();
    let hindrance = is_hindered.then(|| {
        restart_of_the_machine(&applied.effects)
            .or_else(|| hindrance(machine.root, config, &facts, machine.programs))
    });
    let hindrance = hindrance.flatten();
    let problem = first_failed(applied).or_else(|| {
        // Why no GPU can be used says more than what follows from it.
        first_open(applied).filter(|_| hindrance.is_none())
    });
    Ok(UnitSummary {
        role,
        gpus,
        off,
        lacks_worker: options.mode == Mode::Worker && !machine.has_worker(),
        hindrance,
        problem,
        remark: remark(applied),
    })
}

fn restart_of_the_machine(effects: &[Settled]) -> Option<String> {
    let is_due = |it: &&Settled| it.outcome == Outcome::Pending && matches!(it.effect, Effect::Reboot { .. });
    effects.iter().find(is_due).map(|it| it.effect.to_string())
}

fn first_failed(applied: &run::Outcome) -> Option<String> {
    let change = applied.failed.first().map(|it| format!("{}: {}", it.path.display(), it.text));
    let effect = || applied.effects.iter().find(|it| it.outcome == Outcome::Failed);
    change.or_else(|| effect().map(|it| it.text.clone()))
}

fn first_open(applied: &run::Outcome) -> Option<String> {
    let change = applied.blocked.first().map(|it| format!("{}: {}", it.path.display(), it.text));
    let note = || applied.notes.iter().find(|note| note.problem);
    change.or_else(|| note().map(|note| format!("{}: {}", note.about, note.text)))
}

fn remark(applied: &run::Outcome) -> Option<String> {
    let pending = applied.effects.iter().find(|it| it.outcome == Outcome::Pending);
    let contested = || applied.contested.first();
    pending
        .map(|it| format!("pending: {}", it.effect))
        .or_else(|| contested().map(|it| format!("contested: {}: {}", it.path.display(), it.text)))
}
