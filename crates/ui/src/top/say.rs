//! How values are written for people. What is unknown is a dash, never 0.

use std::collections::BTreeSet;

use inventory::health::State;
use inventory::readings::Fault;
use inventory::snapshot::{Card, Missing, Process, Snapshot};
use printable::printable;
use telemetry::container::short;
use telemetry::sample::count as float;
use unicode_width::UnicodeWidthStr as _;

const KIB: f64 = 1024.0;
const MIB: f64 = KIB * 1024.0;
const GIB: f64 = MIB * 1024.0;

/// Stands for an unknown value.
pub const UNKNOWN: &str = "-";

fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNKNOWN.to_owned())
}

pub fn percent(value: Option<f64>) -> String {
    or_unknown(value.map(|value| format!("{value:.0}%")))
}

/// A number with one digit after the point below 100; a larger one leaves no room for it in a column.
fn of_unit(value: f64) -> String {
    if value < 99.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// `17.0 GiB`.
pub(crate) fn bytes(value: Option<u64>) -> String {
    let text = |value: f64| match value {
        _ if value >= GIB => format!("{} GiB", of_unit(value / GIB)),
        _ if value >= MIB => format!("{} MiB", of_unit(value / MIB)),
        _ if value >= KIB => format!("{} KiB", of_unit(value / KIB)),
        _ => format!("{value:.0} B"),
    };
    or_unknown(value.map(float).map(text))
}

/// Used and total, in GiB.
pub fn memory(used: Option<u64>, total: Option<u64>) -> String {
    let gib = |bytes: Option<u64>| or_unknown(bytes.map(|bytes| of_unit(float(bytes) / GIB)));
    match (used, total) {
        (None, None) => UNKNOWN.to_owned(),
        _ => format!("{}/{} GiB", gib(used), gib(total)),
    }
}

/// Used and total of the memory that the card works in.
pub fn memory_of(card: &Card) -> String {
    let memory = card.readings.own_memory();
    self::memory(memory.and_then(|it| it.used_bytes), memory.and_then(|it| it.total_bytes))
}

/// How full the memory is that the card works in.
pub(crate) fn memory_share(card: &Card) -> String {
    let parts = card.readings.own_memory().and_then(|memory| memory.used_bytes.zip(memory.total_bytes));
    let share = |(used, total)| float(used) / float(total) * 100.0;
    percent(parts.filter(|(_, total)| *total > 0).map(share))
}

/// A card's power draw and its limit.
pub fn power(watts: Option<f64>, limit: Option<f64>) -> String {
    match (watts, limit) {
        (None, None) => UNKNOWN.to_owned(),
        (watts, None) => watts_alone(watts),
        (watts, Some(limit)) => {
            format!("{}/{limit:.0} W", or_unknown(watts.map(|watts| format!("{watts:.0}"))))
        }
    }
}

pub(crate) fn watts_alone(watts: Option<f64>) -> String {
    or_unknown(watts.map(|watts| format!("{watts:.0} W")))
}

pub fn celsius(value: Option<f64>) -> String {
    or_unknown(value.map(|value| format!("{value:.0} °C")))
}

pub fn count(value: Option<impl Into<u64>>) -> String {
    or_unknown(value.map(|value| value.into().to_string()))
}

/// The name without the words for vendor, family and form where room is short, then without the chip's: `Navi 31 [RX 7900]`.
pub fn name(card: &Card, room: usize) -> String {
    let model = card.identity.model().or(card.identity.gfx.as_deref()).unwrap_or("AMD GPU");
    let mut name = printable(model);
    for word in ["AMD ", "Instinct ", "Radeon ", " OAM"] {
        if name.width() > room {
            name = name.replacen(word, "", 1);
        }
    }
    let model =
        name.strip_suffix(']').and_then(|name| name.split_once(" [")).map(|(_, model)| model.to_owned());
    model.filter(|_| name.width() > room).unwrap_or(name)
}

/// The daemon's judgement in a word; a dash where it gives none.
pub fn health(card: &Card) -> &'static str {
    card.health.as_ref().map_or(UNKNOWN, |health| health.state.name())
}

/// The health in at most four letters, for a narrow terminal.
pub(crate) fn health_in_short(card: &Card) -> &'static str {
    match card.health.as_ref().map(|health| health.state) {
        Some(State::Healthy) => "ok",
        Some(State::Degraded) => "degr",
        Some(State::Unhealthy) => "bad",
        Some(State::Unknown) => "?",
        None => UNKNOWN,
    }
}

/// Who started a process, without the unit's type where room is short.
pub(crate) fn owner_in(process: &Process, room: usize) -> String {
    let owner = owner(process);
    let name = [".service", ".scope"].iter().find_map(|kind| owner.strip_suffix(kind));
    name.filter(|_| owner.width() > room).map_or_else(|| owner.clone(), str::to_owned)
}

/// Who started a process: its pod and its container, or its unit.
pub(crate) fn owner(process: &Process) -> String {
    let container = process.owner.container.as_deref().map(short);
    let pod = process.owner.pod_path();
    let text = match (pod.as_deref(), container) {
        (Some(pod), Some(container)) => Some(format!("{pod} {container}")),
        (Some(one), None) | (None, Some(one)) => Some(one.to_owned()),
        (None, None) => process.owner.unit.clone(),
    };
    printable(&or_unknown(text))
}

/// The indexes of a card's GPUs: `3`, `8-15`.
pub fn indexes(card: &Card) -> String {
    match card.indexes() {
        Some((first, last)) if first != last => format!("{first}-{last}"),
        Some((first, _)) => first.to_string(),
        None => UNKNOWN.to_owned(),
    }
}

/// How many processes are on a card, each once; a dash where that is not known of one of its partitions.
pub fn process_count(card: &Card, snapshot: &Snapshot) -> String {
    let counts: Option<Vec<u64>> = card.gpus.iter().map(|gpu| snapshot.process_count(card, gpu)).collect();
    let is_its = |it: &&Process| card.gpus.iter().any(|gpu| it.gpu.is(card.id_of(gpu)));
    let listed: BTreeSet<u32> = snapshot.processes.iter().filter(is_its).map(|it| it.pid).collect();
    // Not every process is listed.
    let at_least = u64::try_from(listed.len()).unwrap_or(u64::MAX);
    count(counts.map(|counts| counts.into_iter().fold(at_least, u64::max)))
}

/// The compute and the memory mode: `CPX/NPS4`.
pub fn modes(card: &Card) -> Option<String> {
    match (&card.identity.compute_partition, &card.identity.memory_partition) {
        (Some(compute), Some(memory)) => Some(format!("{compute}/{memory}")),
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (None, None) => None,
    }
}

/// `busy, power unknown: power1_input and 2 more give no value`.
pub(crate) fn failed(missing: &Missing<'_>) -> Option<String> {
    let file = |fault: &Fault| fault.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let why = match &*missing.faults {
        [] => return None,
        [only] => format!("{} gives no value", file(only)),
        [first, rest @ ..] => format!("{} and {} more give no value", file(first), rest.len()),
    };
    Some(format!("{} unknown: {}", missing.failed.join(", "), printable(&why)))
}

/// `power unknown: amdgpu reports none`.
pub fn absent(card: &Card) -> Option<String> {
    let names = card.missing().absent;
    let why = printable(&card.why_absent());
    (!names.is_empty()).then(|| format!("{} unknown: {why}", names.join(", ")))
}

/// What is unknown of a machine with GPUs because its daemon does not publish it; `None`: the daemon does.
pub fn unpublished(snapshot: &Snapshot) -> Option<&'static str> {
    match (&snapshot.daemon, snapshot.publishes_health()) {
        _ if snapshot.cards.is_empty() => None,
        (None, false) => {
            Some("rocworker's daemon publishes nothing: health, leases, drift and pod names are unknown.")
        }
        (None, true) => {
            Some("rocworker's daemon publishes health alone: leases, drift and pod names are unknown.")
        }
        (Some(_), false) => Some("rocworker's daemon publishes no health: rocworker health judges now."),
        (Some(_), true) => None,
    }
}

#[cfg(test)]
mod tests {
    use inventory::snapshot::{Gpu, GpuId};

    use super::*;

    #[test]
    fn bytes_are_written_as_on_the_page() {
        for (size, expected) in [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 19, "1.5 MiB")] {
            assert_eq!(bytes(Some(size)), expected);
        }
        assert_eq!(bytes(None), "-");
    }

    #[test]
    fn a_process_on_several_partitions_counts_once() {
        let on = |pid, index| {
            let gpu = GpuId { index: Some(index), ..GpuId::default() };
            Process { pid, gpu, ..Process::default() }
        };
        let snapshot = Snapshot {
            processes: vec![on(70, 0), on(70, 1), on(70, 2), on(71, 1), on(72, 2)],
            ..Snapshot::default()
        };
        for (counts, expected) in [
            ([Some(1), Some(2)], "2"),
            ([Some(0), Some(0)], "2"),
            // More than are listed.
            ([Some(1), Some(5)], "5"),
            ([Some(1), None], "-"),
        ] {
            let gpus = (0..).zip(counts).map(|(index, compute_processes)| Gpu {
                index: Some(index),
                compute_processes,
                ..Gpu::default()
            });
            let card = Card { gpus: gpus.collect(), ..Card::default() };
            assert_eq!(process_count(&card, &snapshot), expected, "{counts:?}");
        }
    }
}
