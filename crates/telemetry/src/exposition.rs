//! Samples as text: Prometheus' format 0.0.4, and OpenMetrics 1.0.0.

use std::fmt::Write;

pub use crate::format::Format;
use crate::metric::{Kind, Metric};
use crate::sample::Sample;

/// The whole exposition. The samples of a metric stand together, as [`crate::exporter::Exporter::scrape`] returns them.
#[must_use]
pub fn write(samples: &[Sample], format: Format) -> String {
    let mut text = String::with_capacity(samples.len() * 160);
    for family in samples.chunk_by(|one, next| std::ptr::eq(one.metric, next.metric)) {
        if let Some(first) = family.first() {
            head(&mut text, first.metric, format);
        }
        family.iter().for_each(|sample| line(&mut text, sample));
    }
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

/// The lines of a metric before its samples. Writing to a String cannot fail.
fn head(text: &mut String, metric: &Metric, format: Format) {
    let name = family(metric, format);
    writeln!(text, "# HELP {name} {}", metric.help).ok();
    writeln!(text, "# TYPE {name} {}", kind(metric.kind, format)).ok();
    if let Some(unit) = unit(metric).filter(|_| format == Format::OpenMetrics) {
        writeln!(text, "# UNIT {name} {unit}").ok();
    }
}

/// OpenMetrics names the family of a counter and of an info without the suffix that their samples have.
fn family(metric: &Metric, format: Format) -> &'static str {
    let suffix = match metric.kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Untyped => return metric.name,
    };
    match format {
        Format::Prometheus => metric.name,
        Format::OpenMetrics => metric.name.strip_suffix(suffix).unwrap_or(metric.name),
    }
}

fn kind(kind: Kind, format: Format) -> &'static str {
    match (kind, format) {
        (Kind::Info, Format::Prometheus) => "gauge",
        (Kind::Untyped, Format::OpenMetrics) => "unknown",
        (other, _) => other.name(),
    }
}

/// OpenMetrics has a unit only for a family whose name ends in it.
fn unit(metric: &Metric) -> Option<String> {
    let unit = metric.unit.replace(' ', "_");
    let place = family(metric, Format::OpenMetrics).strip_suffix(&unit)?;
    (!unit.is_empty() && place.ends_with('_')).then_some(unit)
}

fn line(text: &mut String, sample: &Sample) {
    text.push_str(sample.metric.name);
    let mut before = '{';
    for (name, value) in &sample.labels {
        text.push(before);
        text.push_str(name);
        text.push_str("=\"");
        value.chars().for_each(|c| match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        });
        text.push('"');
        before = ',';
    }
    if before == ',' {
        text.push('}');
    }
    // `Display` writes the shortest text that reads back as an equal float, without an exponent: integers
    // stay integers.
    writeln!(text, " {}", sample.value).ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Scope;
    use crate::metrics;

    fn sample(metric: &'static Metric, labels: &[(&'static str, &str)], value: f64) -> Sample {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Sample { metric, labels, value }
    }

    fn samples() -> Vec<Sample> {
        vec![
            sample(&metrics::GPU_INFO, &[("gpu", "0"), ("model", "a \"b\" \\ c\nd")], 1.0),
            sample(&metrics::MEMORY_TOTAL, &[("gpu", "0")], 4_294_967_296.0),
            sample(&metrics::MEMORY_TOTAL, &[("gpu", "1")], 9_007_199_254_740_991.0),
            sample(&metrics::ENERGY, &[("gpu", "0")], 0.1),
            sample(&metrics::PCIE_BANDWIDTH, &[("gpu", "0")], 1e21),
            sample(&metrics::SCRAPE_DURATION, &[], 0.000_001_5),
        ]
    }

    #[test]
    fn prometheus_text_has_a_head_for_each_metric_and_escapes_labels() {
        assert_eq!(
            write(&samples(), Format::Prometheus),
            r#"# HELP rocm_gpu_info Identity of the GPU.
# TYPE rocm_gpu_info gauge
rocm_gpu_info{gpu="0",model="a \"b\" \\ c\nd"} 1
# HELP rocm_memory_total GPU memory: VRAM, on an APU GTT, of a partition what KFD gives it.
# TYPE rocm_memory_total untyped
rocm_memory_total{gpu="0"} 4294967296
rocm_memory_total{gpu="1"} 9007199254740991
# HELP rocm_energy_joules_total Energy that the GPU has drawn.
# TYPE rocm_energy_joules_total counter
rocm_energy_joules_total{gpu="0"} 0.1
# HELP rocm_pcie_bandwidth_bytes_per_second PCIe traffic in both directions, as the firmware measures it.
# TYPE rocm_pcie_bandwidth_bytes_per_second gauge
rocm_pcie_bandwidth_bytes_per_second{gpu="0"} 1000000000000000000000
# HELP rocm_exporter_scrape_duration_seconds How long reading the machine took for this scrape.
# TYPE rocm_exporter_scrape_duration_seconds gauge
rocm_exporter_scrape_duration_seconds 0.0000015
"#
        );
    }

    #[test]
    fn openmetrics_names_families_without_suffix_and_ends() {
        let text = write(&samples(), Format::OpenMetrics);
        let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("# ")).collect();
        let heads: Vec<&str> = heads.into_iter().filter(|line| !line.starts_with("# HELP")).collect();
        assert_eq!(
            heads,
            [
                "# TYPE rocm_gpu info",
                "# TYPE rocm_memory_total unknown",
                "# TYPE rocm_energy_joules counter",
                "# UNIT rocm_energy_joules joules",
                "# TYPE rocm_pcie_bandwidth_bytes_per_second gauge",
                "# UNIT rocm_pcie_bandwidth_bytes_per_second bytes_per_second",
                "# TYPE rocm_exporter_scrape_duration_seconds gauge",
                "# UNIT rocm_exporter_scrape_duration_seconds seconds",
                "# EOF",
            ]
        );
        assert!(text.contains("\nrocm_energy_joules_total{gpu=\"0\"} 0.1\n"), "{text}");
        assert!(text.contains("\nrocm_gpu_info{gpu=\"0\","), "{text}");
    }

    #[test]
    fn the_table_is_what_both_formats_demand() {
        let mut names = std::collections::BTreeSet::new();
        for metric in metrics::ALL {
            let Metric { name, kind, help, unit, .. } = metric;
            assert!(names.insert(*name), "{name} stands twice");
            assert!(name.starts_with("rocm_"), "{name}");
            assert_eq!(*kind == Kind::Counter, name.ends_with("_total") && *kind != Kind::Untyped, "{name}");
            assert_eq!(*kind == Kind::Info, name.ends_with("_info"), "{name}");
            assert!(help.ends_with('.') && !help.contains(['\\', '"', '\n']), "{name}: {help}");
            assert!(unit.chars().all(|c| c.is_ascii_lowercase() || c == ' '), "{name}: {unit}");
            let own = metric.labels.iter().all(|label| !crate::metric::GPU_LABELS.contains(label));
            assert!(own, "{name}: a label of its GPU stands among its own");
        }
        assert!(metrics::ALL.iter().any(|metric| metric.scope == Scope::Machine));
    }
}
