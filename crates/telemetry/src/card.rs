//! The readings of a card and of a partition as samples.

use inventory::readings::CardReadings;
use inventory::series::{Value, clocks, engines};
use inventory::snapshot::Part;

use crate::metric::Metric;
use crate::metrics::{ALL, CLOCK, ENGINE_BUSY, GPU_UTILIZATION, MEMORY_TOTAL};
use crate::sample::{Labelled, count};

/// A card that is awake.
pub(crate) fn card(readings: &CardReadings, to: &mut Labelled<'_>) {
    for metric in ALL {
        if let Some(values) = metric.values {
            add(metric, values(readings), to);
        }
    }
}

/// Adds a partition's samples while its card is awake. Of a partition's memory only the size is known.
pub(crate) fn partition(part: &Part, to: &mut Labelled<'_>) {
    to.add(&GPU_UTILIZATION, part.readings.busy_percent);
    add(&ENGINE_BUSY, engines(&part.readings.engines), to);
    to.add(&MEMORY_TOTAL, part.memory_total_bytes.map(count));
    add(&CLOCK, clocks(&part.readings.clocks), to);
}

fn add(metric: &'static Metric, values: Vec<Value>, to: &mut Labelled<'_>) {
    for Value { labels, value } in values {
        to.add_with_all(metric, labels, value);
    }
}
