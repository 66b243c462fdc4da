use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use inventory::readings::Fault;
use root::patient::{DEADLINE, PATIENCE, Patient};
use serde::Serialize;
use telemetry::exporter::Exporter;
use telemetry::exposition::{self, Format};
use telemetry::metrics::GPU_INFO;
use telemetry::sample::Sample;
use telemetry::samples::samples;

use super::Outcome;
use super::session::{Misuse, Session};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// Prometheus' text format 0.0.4
    Prometheus,
    /// OpenMetrics 1.0.0
    Openmetrics,
}

impl From<TextFormat> for Format {
    fn from(format: TextFormat) -> Self {
        match format {
            TextFormat::Prometheus => Self::Prometheus,
            TextFormat::Openmetrics => Self::OpenMetrics,
        }
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    schema_version: u32,
    samples: Vec<Entry<'a>>,
    unread: Vec<Unread>,
}

/// A file that is there and gave no value.
#[derive(Serialize)]
struct Unread {
    file: String,
    reason: String,
}

#[derive(Serialize)]
struct Entry<'a> {
    metric: &'a str,
    kind: &'static str,
    /// The unit, empty for a metric that counts.
    unit: &'a str,
    labels: BTreeMap<&'a str, &'a str>,
    value: f64,
}

pub(crate) fn run(session: &Session, format: Option<TextFormat>) -> anyhow::Result<Outcome> {
    if format.is_some() && session.format.is_json() {
        return Err(
            Misuse("--format names a format of the text: leave it out with --output json".into()).into()
        );
    }
    // A clock before 1970 is as good as one that was never set.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // A thread that reads a file that hangs does not keep this process: main's end is its end.
    let mut patient = Patient::new(session.root.place(), PATIENCE, DEADLINE);
    let mut snapshot = patient.run(move |root| Exporter::default().scrape(root, now.as_secs_f64()))?;
    snapshot.stuck_reads = Some(patient.stuck() + session.root.stuck());
    let samples = samples(&snapshot);
    if !samples.iter().any(|sample| std::ptr::eq(sample.metric, &GPU_INFO)) {
        tracing::warn!(
            "no AMD GPU was found, so no metric names one; see `rocworker doctor` if there should be"
        );
    }
    snapshot.faults.iter().for_each(|fault| tracing::info!("{}", fault.reason));
    let unread = snapshot.faults.iter().map(unread).collect();
    let answer = Answer { schema_version: 1, samples: samples.iter().map(entry).collect(), unread };
    let format = format.unwrap_or(TextFormat::Prometheus);
    session.format.print(&answer, || exposition::write(&samples, format.into()))?;
    Ok(Outcome::Done)
}

fn entry(sample: &Sample) -> Entry<'_> {
    let labels = sample.labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let metric = sample.metric;
    Entry { metric: metric.name, kind: metric.kind.name(), unit: metric.unit, labels, value: sample.value }
}

fn unread(fault: &Fault) -> Unread {
    Unread { file: fault.file.display().to_string(), reason: fault.reason.to_string() }
}
