//! The readings of a card and of a partition as samples.

use inventory::readings::{CardReadings, Clock, Engine, MemoryPool, Pcie, Power, RasBlock};
use inventory::snapshot::{Card, Gpu};

use crate::metrics::{
    CLOCK, ECC_UNCORRECTABLE, ENERGY, ENGINE_BUSY, FAN_MAX, FAN_SPEED, FIRMWARE, GPU_DEVCOREDUMP,
    GPU_TEMPERATURE, GPU_TEMPERATURE_LIMIT, GPU_UTILIZATION, MEMORY_POOL_SIZE, MEMORY_POOL_USED,
    MEMORY_TOTAL, MEMORY_USED, MEMORY_UTILIZATION, PCIE_BANDWIDTH, PCIE_ERRORS, PCIE_REPLAYS, PCIE_SPEED,
    PCIE_WIDTH, POWER_LIMIT, POWER_USAGE, RAS_ERRORS, RETIRED_PAGES, THROTTLE_RESIDENCY, THROTTLE_SAMPLES,
    THROTTLE_STATUS, VOLTAGE, XGMI_SPEED, XGMI_TRAFFIC, XGMI_UP, XGMI_WIDTH,
};
use crate::sample::{Label, Labelled, count, truth};

/// A card that is awake.
pub(crate) fn card(card: &Card, to: &mut Labelled<'_>) {
    let readings = &card.readings;
    if let Some(own) = card.memory() {
        to.add(&MEMORY_USED, own.used_bytes.map(count));
        to.add(&MEMORY_TOTAL, own.total_bytes.map(count));
    }
    for it in &readings.temperatures {
        let sensor = || ("sensor", it.sensor.clone());
        to.add_with(&GPU_TEMPERATURE, [sensor()], it.celsius);
        to.add_with(&GPU_TEMPERATURE_LIMIT, [sensor(), label("limit", "critical")], it.critical_celsius);
        to.add_with(&GPU_TEMPERATURE_LIMIT, [sensor(), label("limit", "emergency")], it.emergency_celsius);
    }
    to.add(&GPU_UTILIZATION, readings.busy_percent);
    to.add(&MEMORY_UTILIZATION, readings.memory_busy_percent);
    engines(&readings.engines, to);
    memory(&readings.memory, to);
    power(&readings.power, to);
    to.add(&ENERGY, readings.energy_joules);
    clocks(&readings.clocks, to);
    for it in &readings.voltages {
        to.add_with(&VOLTAGE, [("rail", it.rail.clone())], it.volts);
    }
    for it in &readings.fans {
        let fan = || ("fan", it.number.to_string());
        to.add_with(&FAN_SPEED, [fan()], it.rpm);
        to.add_with(&FAN_MAX, [fan()], it.max_rpm);
    }
    throttle(readings, to);
    pcie(&readings.pcie, to);
    ras(&readings.ras, to);
    if let Some(pages) = readings.retired_pages {
        let states =
            [("retired", pages.retired), ("pending", pages.pending), ("unreservable", pages.unreservable)];
        for (state, pages) in states {
            to.add_with(&RETIRED_PAGES, [label("state", state)], count(pages));
        }
    }
    xgmi(readings, to);
    to.add(&GPU_DEVCOREDUMP, readings.hang.map(truth));
    for (name, version) in &readings.firmware {
        to.add_with(&FIRMWARE, [("firmware", name.clone()), ("version", version.clone())], 1.0);
    }
}

/// One partition of a card that is awake. Of its memory only the size is known.
pub(crate) fn partition(gpu: &Gpu, to: &mut Labelled<'_>) {
    to.add(&GPU_UTILIZATION, gpu.readings.busy_percent);
    engines(&gpu.readings.engines, to);
    to.add(&MEMORY_TOTAL, gpu.memory_total_bytes.map(count));
    clocks(&gpu.readings.clocks, to);
}

fn label(name: &'static str, value: &str) -> Label {
    (name, value.to_owned())
}

fn instance(number: Option<u32>) -> Option<Label> {
    number.map(|number| ("instance", number.to_string()))
}

fn engines(engines: &[Engine], to: &mut Labelled<'_>) {
    for it in engines {
        let labels = [Some(label("engine", it.name)), instance(it.instance)];
        to.add_with_all(&ENGINE_BUSY, labels.into_iter().flatten().collect(), it.busy);
    }
}

fn clocks(clocks: &[Clock], to: &mut Labelled<'_>) {
    for it in clocks {
        let labels = [Some(label("clock", it.domain)), instance(it.instance)];
        to.add_with_all(&CLOCK, labels.into_iter().flatten().collect(), it.hertz);
    }
}

fn memory(pools: &[MemoryPool], to: &mut Labelled<'_>) {
    for it in pools {
        to.add_with(&MEMORY_POOL_USED, [label("pool", it.pool)], it.used_bytes.map(count));
        to.add_with(&MEMORY_POOL_SIZE, [label("pool", it.pool)], it.total_bytes.map(count));
    }
}

fn power(power: &Power, to: &mut Labelled<'_>) {
    to.add(&POWER_USAGE, power.watts);
    let limits = [
        ("current", power.cap_watts),
        ("default", power.cap_default_watts),
        ("min", power.cap_min_watts),
        ("max", power.cap_max_watts),
    ];
    for (limit, watts) in limits {
        to.add_with(&POWER_LIMIT, [label("limit", limit)], watts);
    }
}

fn throttle(readings: &CardReadings, to: &mut Labelled<'_>) {
    for (reason, is_active) in &readings.throttle.status {
        to.add_with(&THROTTLE_STATUS, [label("reason", reason)], truth(*is_active));
    }
    for (reason, samples) in &readings.throttle.residency {
        to.add_with(&THROTTLE_RESIDENCY, [label("reason", reason)], count(*samples));
    }
    to.add(&THROTTLE_SAMPLES, readings.throttle.samples.map(count));
}

fn pcie(pcie: &Pcie, to: &mut Labelled<'_>) {
    to.add(&PCIE_BANDWIDTH, pcie.bytes_per_second);
    for (link, speed, width) in [("current", pcie.speed, pcie.width), ("max", pcie.max_speed, pcie.max_width)]
    {
        to.add_with(&PCIE_SPEED, [label("link", link)], speed);
        to.add_with(&PCIE_WIDTH, [label("link", link)], width.map(f64::from));
    }
    to.add(&PCIE_REPLAYS, pcie.replays.map(count));
    let errors = [
        ("replay_rollover", pcie.replay_rollovers),
        ("nak_sent", pcie.naks_sent),
        ("nak_received", pcie.naks_received),
        ("recovery", pcie.recoveries),
    ];
    for (kind, errors) in errors {
        to.add_with(&PCIE_ERRORS, [label("kind", kind)], errors.map(count));
    }
}

fn ras(blocks: &[RasBlock], to: &mut Labelled<'_>) {
    for it in blocks {
        let severities =
            [("correctable", it.correctable), ("deferred", it.deferred), ("uncorrectable", it.uncorrectable)];
        for (severity, errors) in severities {
            let labels = [("block", it.block.clone()), label("severity", severity)];
            to.add_with(&RAS_ERRORS, labels, errors.map(count));
        }
    }
    // A sum without a block that cannot be read now would fall, and rise again: that looks like new errors.
    let sum = blocks.iter().map(|it| it.uncorrectable).reduce(|sum, it| Some(sum?.saturating_add(it?)));
    to.add(&ECC_UNCORRECTABLE, sum.flatten().map(count));
}

fn xgmi(readings: &CardReadings, to: &mut Labelled<'_>) {
    let xgmi = &readings.xgmi;
    for it in &xgmi.links {
        let link = || ("link", it.link.to_string());
        to.add_with(&XGMI_TRAFFIC, [link(), label("direction", "read")], it.read_bytes.map(count));
        to.add_with(&XGMI_TRAFFIC, [link(), label("direction", "write")], it.written_bytes.map(count));
        to.add_with(&XGMI_UP, [link()], it.up.map(truth));
    }
    // promtool takes bits for no base unit.
    to.add(&XGMI_SPEED, xgmi.speed.map(|bits| bits / 8.0));
    to.add(&XGMI_WIDTH, xgmi.width.map(f64::from));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_uncorrectable_errors_is_absent_while_one_block_cannot_be_read() {
        let block = |uncorrectable| RasBlock {
            block: "umc".to_owned(),
            correctable: Some(1),
            deferred: None,
            uncorrectable,
        };
        let sum = |blocks: &[RasBlock]| {
            let mut samples = Vec::new();
            ras(blocks, &mut Labelled::new(&[], &mut samples));
            let sum = samples.iter().find(|sample| std::ptr::eq(sample.metric, &ECC_UNCORRECTABLE));
            sum.map(|sample| sample.value)
        };
        assert_eq!(sum(&[block(Some(5)), block(Some(2))]), Some(7.0));
        assert_eq!(sum(&[block(Some(5)), block(None)]), None);
        assert_eq!(sum(&[block(None), block(Some(2))]), None);
        assert_eq!(sum(&[]), None);
    }
}
