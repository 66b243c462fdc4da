//! The metrics of several machines as one exposition: a parser takes the head of a metric once. Each series has a label
//! `host` in front of its own.

use std::collections::BTreeMap;

use serde::Deserialize;
use telemetry::exporter::in_order;
use telemetry::exposition::{self, Format};
use telemetry::metric::{GPU_LABELS, Metric};
use telemetry::metrics;
use telemetry::sample::{Label, Sample};

use super::HostResult;
use crate::cli::fleet::Named;
use crate::cli::metrics::TextFormat;

const HOST: &str = "host";

#[derive(Deserialize)]
struct Answer {
    samples: Vec<Series>,
}

/// As `metrics -o json` has it, of this very version.
#[derive(Deserialize)]
struct Series {
    metric: String,
    labels: BTreeMap<String, String>,
    value: Option<f64>,
}

pub(super) fn joined(hosts: &[Named], answers: &[Option<HostResult>], format: TextFormat) -> String {
    let mut samples = Vec::new();
    for (named, answered) in hosts.iter().zip(answers) {
        let answer = answered.as_ref().and_then(|it| serde_json::from_slice::<Answer>(&it.stdout).ok());
        let series = answer.map_or_else(Vec::new, |answer| answer.samples);
        samples.extend(series.iter().filter_map(|series| sample(named, series)));
    }
    let format = match format {
        TextFormat::Prometheus => Format::Prometheus,
        TextFormat::Openmetrics => Format::OpenMetrics,
    };
    exposition::write(&in_order(samples), format)
}

fn sample(named: &Named, series: &Series) -> Option<Sample> {
    let metric: &'static Metric = metrics::ALL.into_iter().find(|metric| metric.name == series.metric)?;
    let own = GPU_LABELS.iter().chain(metric.labels).filter_map(|name| {
        let value = series.labels.get(*name)?;
        Some((*name, value.clone()))
    });
    let labels: Vec<Label> = std::iter::once((HOST, named.name.clone())).chain(own).collect();
    Some(Sample { metric, labels, value: series.value? })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cli::fleet::answers::Ended;
    use crate::fleet::host::Host;

    /// One machine failed, and one has a name that must be escaped.
    #[test]
    fn each_metric_has_one_head_and_each_series_the_name_of_its_machine() {
        let host: Host = "gpu1".parse().unwrap();
        let named = |name: &str| Named { name: name.to_owned(), host: host.clone() };
        let answered = |value: &str| {
            let json = format!(
                r#"{{"schema_version":1,"unread":[],"samples":[
                {{"metric":"rocm_gpu_info","kind":"info","unit":"","labels":{{"gpu":"0","pci":"0000:03:00.0"}},"value":1.0}},
                {{"metric":"rocm_energy_joules_total","kind":"counter","unit":"joules","labels":{{"gpu":"0"}},"value":{value}}}
                ]}}"#
            );
            Some(HostResult::new(&host, Ended::Code(0), json.into_bytes(), b"", Duration::ZERO))
        };
        let failed = Some(HostResult::new(
            &host,
            Ended::Code(1),
            Vec::new(),
            b"rocworker: gpu1: no\n",
            Duration::ZERO,
        ));
        let hosts = [named("gpu1"), named("ops@gpu2"), named("gpu3")];
        let text = joined(&hosts, &[answered("1e3"), failed, answered("0.5")], TextFormat::Prometheus);
        assert_eq!(
            text,
            r#"# HELP rocm_gpu_info Identity of the GPU.
# TYPE rocm_gpu_info gauge
rocm_gpu_info{host="gpu1",gpu="0",pci="0000:03:00.0"} 1
rocm_gpu_info{host="gpu3",gpu="0",pci="0000:03:00.0"} 1
# HELP rocm_energy_joules_total Energy that the GPU has drawn.
# TYPE rocm_energy_joules_total counter
rocm_energy_joules_total{host="gpu1",gpu="0"} 1000
rocm_energy_joules_total{host="gpu3",gpu="0"} 0.5
"#
        );
    }

    #[test]
    fn no_metric_has_a_label_of_that_name() {
        for metric in metrics::ALL {
            assert!(!metric.labels.contains(&HOST) && !GPU_LABELS.contains(&HOST), "{}", metric.name);
        }
    }
}
