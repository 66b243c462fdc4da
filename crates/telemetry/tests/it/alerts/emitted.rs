//! The series that exist, with the labels that they may have.

use std::collections::{BTreeMap, BTreeSet};

use telemetry::metric::{GPU_LABELS, Scope};
use telemetry::metrics::ALL;

use crate::alerts::expression::labels_of;
use crate::alerts::files::{self, DCGM};

pub(crate) type Labels = BTreeSet<String>;
/// Labels by the name of a metric.
pub(crate) type Series = BTreeMap<String, Labels>;

/// The labels that Prometheus adds to each target.
pub(crate) const TARGET: [&str; 2] = ["instance", "job"];
pub(crate) fn set<'a>(labels: impl IntoIterator<Item = &'a str>) -> Labels {
    labels.into_iter().map(str::to_owned).collect()
}

/// The exporter's series, and Prometheus' `up`.
pub(crate) fn by_the_exporter() -> Series {
    let mut series = Series::from([("up".to_owned(), set(TARGET))]);
    for metric in ALL {
        let of_gpu = GPU_LABELS.into_iter().filter(|label| match metric.scope {
            Scope::Machine => false,
            Scope::Card => *label != "partition",
            Scope::Gpu => true,
        });
        let own = metric.labels.iter().copied();
        series.insert(metric.name.to_owned(), set(TARGET.into_iter().chain(own).chain(of_gpu)));
    }
    series
}

/// The series that a dashboard may use: those of the exporter and of the recording rules.
pub(crate) fn with_recorded() -> Series {
    with_records_of(&files::text(DCGM)).unwrap()
}

/// The series that a file's rules may use: those of the exporter and those that the file records.
pub(crate) fn with_records_of(rules: &str) -> Result<Series, String> {
    let mut series = by_the_exporter();
    let every: Labels = series.values().flatten().cloned().collect();
    for rule in files::rules(rules).iter().filter(|rule| rule.is_record()) {
        // A rule may read its own earlier answers, whose labels are those of its other operands.
        series.insert(rule.name().to_owned(), every.clone());
        let labels = labels_of(rule.expression(), &series)?;
        series.insert(rule.name().to_owned(), labels);
    }
    Ok(series)
}
