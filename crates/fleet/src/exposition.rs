//! The metrics of several machines as one exposition: a parser takes the head of a metric once. Each series has a label
//! `host` in front of its own.

use std::collections::BTreeMap;

use serde::Deserialize;
use telemetry::exposition::{self, Format};
use telemetry::metric::{GPU_LABELS, Metric};
use telemetry::metrics;
use telemetry::sample::{Label, Sample};
use telemetry::samples::in_order;

const HOST: &str = "host";

#[derive(Deserialize)]
struct Answer {
    samples: Vec<Series>,
}

/// A sample as this version's `metrics -o json` prints it.
#[derive(Deserialize)]
struct Series {
    metric: String,
    labels: BTreeMap<String, String>,
    value: Option<f64>,
}

/// Whether a machine printed the answer of `metrics -o json`.
pub fn is_answer(stdout: &[u8]) -> bool {
    serde_json::from_slice::<Answer>(stdout).is_ok()
}

/// Joins the metrics of `hosts`: pairs of a machine's name and what `metrics -o json` printed for it. A machine that
/// printed no answer has no series.
pub fn joined<'h>(hosts: impl Iterator<Item = (&'h str, &'h [u8])>, format: Format) -> String {
    let mut samples = Vec::new();
    for (name, stdout) in hosts {
        let series = serde_json::from_slice::<Answer>(stdout).map_or_else(|_| Vec::new(), |it| it.samples);
        samples.extend(series.iter().filter_map(|series| sample(name, series)));
    }
    exposition::write(&in_order(samples), format)
}

fn sample(host: &str, series: &Series) -> Option<Sample> {
    let metric: &'static Metric = metrics::ALL.into_iter().find(|metric| metric.name == series.metric)?;
    let own = GPU_LABELS.iter().chain(metric.labels).filter_map(|name| {
        let value = series.labels.get(*name)?;
        Some((*name, value.clone()))
    });
    let labels: Vec<Label> = std::iter::once((HOST, host.to_owned())).chain(own).collect();
    Some(Sample { metric, labels, value: series.value? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One machine failed, and one has a name that must be escaped.
    #[test]
    fn each_metric_has_one_head_and_each_series_the_name_of_its_machine() {
        let answered = |value: &str| {
            format!(
                r#"{{"schema_version":1,"unread":[],"samples":[
                {{"metric":"rocm_gpu_info","kind":"info","unit":"","labels":{{"gpu":"0","pci":"0000:03:00.0"}},"value":1.0}},
                {{"metric":"rocm_energy_joules_total","kind":"counter","unit":"joules","labels":{{"gpu":"0"}},"value":{value}}}
                ]}}"#
            )
        };
        let hosts = [("gpu1", answered("1e3")), ("ops@gpu2", String::new()), ("gpu3", answered("0.5"))];
        let hosts = hosts.iter().map(|(name, json)| (*name, json.as_bytes()));
        assert!(
            is_answer(answered("1").as_bytes())
                && !is_answer(b"{}")
                && !is_answer(answered("1e999").as_bytes())
        );
        let text = joined(hosts, Format::Prometheus);
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
