//! A card's readings as numbers, by the names and labels of docs/metrics.md: metrics are made of them, and rules of health
//! name them.

use crate::readings::{CardReadings, Clock, Engine};

/// A label's name and value.
pub type Label = (&'static str, String);

/// A reading, or several that differ in their labels.
#[derive(Debug)]
pub struct Series {
    pub name: &'static str,
    /// The names of the labels that a value can have, in the order in which they are written.
    pub labels: &'static [&'static str],
    /// Takes the values from the readings of a card that is awake.
    pub values: fn(&CardReadings) -> Vec<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    pub labels: Vec<Label>,
    pub value: f64,
}

impl Series {
    const fn new(
        name: &'static str,
        labels: &'static [&'static str],
        values: fn(&CardReadings) -> Vec<Value>,
    ) -> Self {
        Self { name, labels, values }
    }
}

/// Every series of a card.
pub static ALL: [&Series; 33] = [
    &TEMPERATURE,
    &TEMPERATURE_LIMIT,
    &UTILIZATION,
    &MEMORY_UTILIZATION,
    &ENGINE_BUSY,
    &MEMORY_USED,
    &MEMORY_TOTAL,
    &MEMORY_POOL_USED,
    &MEMORY_POOL_SIZE,
    &POWER_USAGE,
    &POWER_LIMIT,
    &ENERGY,
    &CLOCK,
    &VOLTAGE,
    &FAN_SPEED,
    &FAN_MAX,
    &THROTTLE_STATUS,
    &THROTTLE_RESIDENCY,
    &THROTTLE_SAMPLES,
    &PCIE_BANDWIDTH,
    &PCIE_SPEED,
    &PCIE_WIDTH,
    &PCIE_REPLAYS,
    &PCIE_ERRORS,
    &RAS_ERRORS,
    &ECC_UNCORRECTABLE,
    &RETIRED_PAGES,
    &XGMI_TRAFFIC,
    &XGMI_SPEED,
    &XGMI_WIDTH,
    &XGMI_UP,
    &DEVCOREDUMP,
    &FIRMWARE,
];

pub static TEMPERATURE: Series = Series::new("rocm_gpu_temperature", &["sensor"], |card| {
    all(card.temperatures.iter().map(|it| ([("sensor", &*it.sensor)], it.celsius)))
});
pub static TEMPERATURE_LIMIT: Series =
    Series::new("rocm_gpu_temperature_limit_celsius", &["sensor", "limit"], |card| {
        all(card.temperatures.iter().flat_map(|it| {
            let limits = [("critical", it.critical_celsius), ("emergency", it.emergency_celsius)];
            limits.map(|(limit, celsius)| ([("sensor", &*it.sensor), ("limit", limit)], celsius))
        }))
    });
pub static UTILIZATION: Series = Series::new("rocm_gpu_utilization", &[], |card| one(card.busy_percent));
pub static MEMORY_UTILIZATION: Series =
    Series::new("rocm_memory_utilization", &[], |card| one(card.memory_busy_percent));
pub static ENGINE_BUSY: Series =
    Series::new("rocm_engine_busy_ratio", &["engine", "instance"], |card| engines(&card.engines));
pub static MEMORY_USED: Series = Series::new("rocm_memory_used", &[], |card| {
    one(card.own_memory().and_then(|it| it.used_bytes).map(count))
});
pub static MEMORY_TOTAL: Series = Series::new("rocm_memory_total", &[], |card| {
    one(card.own_memory().and_then(|it| it.total_bytes).map(count))
});
pub static MEMORY_POOL_USED: Series = Series::new("rocm_memory_pool_used_bytes", &["pool"], |card| {
    all(card.memory.iter().map(|it| ([("pool", &*it.pool)], it.used_bytes.map(count))))
});
pub static MEMORY_POOL_SIZE: Series = Series::new("rocm_memory_pool_size_bytes", &["pool"], |card| {
    all(card.memory.iter().map(|it| ([("pool", &*it.pool)], it.total_bytes.map(count))))
});
pub static POWER_USAGE: Series = Series::new("rocm_power_usage", &[], |card| one(card.power.watts));
pub static POWER_LIMIT: Series = Series::new("rocm_power_limit_watts", &["limit"], |card| {
    let power = &card.power;
    let (current, default) = (power.cap_watts, power.cap_default_watts);
    let (min, max) = (power.cap_min_watts, power.cap_max_watts);
    by("limit", [("current", current), ("default", default), ("min", min), ("max", max)])
});
pub static ENERGY: Series = Series::new("rocm_energy_joules_total", &[], |card| one(card.energy_joules));
pub static CLOCK: Series =
    Series::new("rocm_clock_hertz", &["clock", "instance"], |card| clocks(&card.clocks));
pub static VOLTAGE: Series = Series::new("rocm_voltage_volts", &["rail"], |card| {
    all(card.voltages.iter().map(|it| ([("rail", &*it.rail)], Some(it.volts))))
});
pub static FAN_SPEED: Series = Series::new("rocm_fan_speed_rpm", &["fan"], |card| {
    all(card.fans.iter().map(|it| ([("fan", it.number.to_string())], it.rpm)))
});
pub static FAN_MAX: Series = Series::new("rocm_fan_max_rpm", &["fan"], |card| {
    all(card.fans.iter().map(|it| ([("fan", it.number.to_string())], it.max_rpm)))
});
pub static THROTTLE_STATUS: Series = Series::new("rocm_gpu_throttle_status", &["reason"], |card| {
    by("reason", card.throttle.status.iter().map(|(reason, is_active)| (&**reason, Some(truth(*is_active)))))
});
pub static THROTTLE_RESIDENCY: Series = Series::new("rocm_throttle_residency_total", &["reason"], |card| {
    by("reason", card.throttle.residency.iter().map(|(reason, samples)| (&**reason, Some(count(*samples)))))
});
pub static THROTTLE_SAMPLES: Series =
    Series::new("rocm_throttle_samples_total", &[], |card| one(card.throttle.samples.map(count)));
pub static PCIE_BANDWIDTH: Series =
    Series::new("rocm_pcie_bandwidth_bytes_per_second", &[], |card| one(card.pcie.bytes_per_second));
pub static PCIE_SPEED: Series = Series::new("rocm_pcie_link_speed_transfers_per_second", &["link"], |card| {
    by("link", [("current", card.pcie.speed), ("max", card.pcie.max_speed)])
});
pub static PCIE_WIDTH: Series = Series::new("rocm_pcie_link_width_lanes", &["link"], |card| {
    let (current, max) = (card.pcie.width.map(f64::from), card.pcie.max_width.map(f64::from));
    by("link", [("current", current), ("max", max)])
});
pub static PCIE_REPLAYS: Series =
    Series::new("rocm_pcie_replays_total", &[], |card| one(card.pcie.replays.map(count)));
pub static PCIE_ERRORS: Series = Series::new("rocm_pcie_errors_total", &["kind"], |card| {
    let pcie = &card.pcie;
    let errors = [
        ("replay_rollover", pcie.replay_rollovers),
        ("nak_sent", pcie.naks_sent),
        ("nak_received", pcie.naks_received),
        ("recovery", pcie.recoveries),
    ];
    by("kind", errors.map(|(kind, errors)| (kind, errors.map(count))))
});
pub static RAS_ERRORS: Series = Series::new("rocm_ras_errors_total", &["block", "severity"], |card| {
    all(card.ras.iter().flat_map(|it| {
        let severities =
            [("correctable", it.correctable), ("deferred", it.deferred), ("uncorrectable", it.uncorrectable)];
        severities
            .map(|(severity, errors)| ([("block", &*it.block), ("severity", severity)], errors.map(count)))
    }))
});
/// A sum without a block that cannot be read now would fall, and rise again: that looks like new errors.
pub static ECC_UNCORRECTABLE: Series = Series::new("rocm_gpu_ecc_errors_uncorrectable", &[], |card| {
    let sum = card.ras.iter().map(|it| it.uncorrectable).reduce(|sum, it| Some(sum?.saturating_add(it?)));
    one(sum.flatten().map(count))
});
pub static RETIRED_PAGES: Series = Series::new("rocm_retired_pages", &["state"], |card| {
    let pages = card.retired_pages.as_ref();
    let states = [
        ("retired", pages.map(|it| it.retired)),
        ("pending", pages.map(|it| it.pending)),
        ("unreservable", pages.map(|it| it.unreservable)),
    ];
    by("state", states.map(|(state, pages)| (state, pages.map(count))))
});
pub static XGMI_TRAFFIC: Series =
    Series::new("rocm_xgmi_traffic_bytes_total", &["link", "direction"], |card| {
        all(card.xgmi.links.iter().flat_map(|it| {
            let directions = [("read", it.read_bytes), ("write", it.written_bytes)];
            directions.map(|(direction, bytes)| {
                ([("link", it.link.to_string()), ("direction", direction.to_owned())], bytes.map(count))
            })
        }))
    });
/// promtool takes bits for no base unit.
pub static XGMI_SPEED: Series = Series::new("rocm_xgmi_lane_speed_bytes_per_second", &[], |card| {
    one(card.xgmi.speed.map(|bits| bits / 8.0))
});
pub static XGMI_WIDTH: Series =
    Series::new("rocm_xgmi_link_width_lanes", &[], |card| one(card.xgmi.width.map(f64::from)));
pub static XGMI_UP: Series = Series::new("rocm_xgmi_link_up", &["link"], |card| {
    all(card.xgmi.links.iter().map(|it| ([("link", it.link.to_string())], it.up.map(truth))))
});
pub static DEVCOREDUMP: Series = Series::new("rocm_gpu_devcoredump", &[], |card| one(card.hang.map(truth)));
pub static FIRMWARE: Series = Series::new("rocm_firmware_info", &["firmware", "version"], |card| {
    all(card.firmware.iter().map(|(name, version)| ([("firmware", name), ("version", version)], Some(1.0))))
});

/// The values of [`ENGINE_BUSY`], of a card's engines or of a partition's.
#[must_use]
pub fn engines(engines: &[Engine]) -> Vec<Value> {
    engines.iter().map(|it| of_instance(("engine", &*it.name), it.instance, it.busy)).collect()
}

/// The values of [`CLOCK`].
#[must_use]
pub fn clocks(clocks: &[Clock]) -> Vec<Value> {
    clocks.iter().map(|it| of_instance(("clock", &*it.domain), it.instance, it.hertz)).collect()
}

fn of_instance((name, of): (&'static str, &str), instance: Option<u32>, value: f64) -> Value {
    let instance = instance.map(|number| ("instance", number.to_string()));
    Value { labels: [(name, of.to_owned())].into_iter().chain(instance).collect(), value }
}

/// A value without labels.
fn one(value: Option<f64>) -> Vec<Value> {
    value.map(|value| Value { labels: Vec::new(), value }).into_iter().collect()
}

/// Values that differ in one label.
fn by<'v>(label: &'static str, values: impl IntoIterator<Item = (&'v str, Option<f64>)>) -> Vec<Value> {
    all(values.into_iter().map(|(of, value)| ([(label, of)], value)))
}

/// Leaves out values that are not known.
fn all<L: Into<String>, const N: usize>(
    values: impl IntoIterator<Item = ([(&'static str, L); N], Option<f64>)>,
) -> Vec<Value> {
    let known = |(labels, value): ([(&'static str, L); N], Option<f64>)| {
        Some(Value { labels: labels.map(|(name, of)| (name, of.into())).into(), value: value? })
    };
    values.into_iter().filter_map(known).collect()
}

/// A count as a value: exact below 2^53.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "JSON and every format that Prometheus reads have 64-bit floats"
)]
pub fn count(number: u64) -> f64 {
    number as f64
}

/// 1 for what is so, 0 for what is not.
#[must_use]
pub fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

#[cfg(test)]
mod tests;
