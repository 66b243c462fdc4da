//! The files of rules: what they must hold, and that each name in them is one that is emitted.

use std::collections::BTreeSet;

use crate::alerts::emitted::{Labels, with_records_of};
use crate::alerts::expression::labels_of;
use crate::alerts::files::{self, ALERTS, DCGM, Rule};

/// The labels that a text names as `$labels.NAME`.
pub(crate) fn labels_in(text: &str) -> Labels {
    let names = text.split("$labels.").skip(1);
    names.map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()).collect()
}

/// The faults in the rules of a file.
fn faults(text: &str) -> Vec<String> {
    let series = match with_records_of(text) {
        Ok(series) => series,
        Err(fault) => return vec![fault],
    };
    let mut faults = Vec::new();
    for rule in files::rules(text) {
        match labels_of(rule.expression(), &series) {
            Ok(labels) => faults.extend(unknown_in_annotations(&rule, &labels)),
            Err(fault) => faults.push(format!("{}: {fault}", rule.name())),
        }
    }
    faults
}

fn unknown_in_annotations(rule: &Rule, labels: &Labels) -> Vec<String> {
    let annotations = rule.pairs("annotations").into_iter();
    annotations
        .flat_map(|(key, text)| {
            let unknown: Vec<String> = labels_in(&text).difference(labels).cloned().collect();
            unknown.into_iter().map(move |label| (key.clone(), label))
        })
        .map(|(key, label)| format!("{}: {key}: no label {label}", rule.name()))
        .collect()
}

#[test]
fn rules_name_only_metrics_and_labels_that_the_exporter_emits() {
    for file in [ALERTS, DCGM] {
        let faults = faults(&files::text(file));
        assert!(faults.is_empty(), "{file}:\n{}", faults.join("\n"));
    }
}

/// A name that is misspelt once, in any place of a rule, is found.
#[test]
fn a_misspelt_metric_or_label_in_any_rule_is_found() {
    for (file, least) in [(ALERTS, 40), (DCGM, 10)] {
        let text = files::text(file);
        let mut found = 0;
        for name in names_in(&text) {
            for (place, _) in text.match_indices(&name) {
                let line = text[..place].rsplit('\n').next().unwrap();
                let follows = text[place + name.len()..].chars().next();
                let is_whole = !text[..place].ends_with(|c: char| c.is_alphanumeric() || c == '_')
                    && follows.is_none_or(|c| !c.is_alphanumeric() && c != '_');
                // A comment and a text for a person name it for a person.
                let is_prose = line.contains('#') || (line.contains(": \"") && !line.ends_with("$labels."));
                // `severity: critical`: a label of the alert.
                let is_key = follows == Some(':');
                // What is recorded has the name that stands there.
                let is_recorded = line.ends_with("record: ");
                if !is_whole || is_prose || is_key || is_recorded {
                    continue;
                }
                let mutant = format!("{}{name}x{}", &text[..place], &text[place + name.len()..]);
                assert!(
                    !faults(&mutant).is_empty(),
                    "{file}: misspelling {name} at byte {place} is not found"
                );
                found += 1;
            }
        }
        assert!(found >= least, "{file}: {found} names");
    }
}

/// Metrics and labels, as far as the text of a file has them.
fn names_in(text: &str) -> BTreeSet<String> {
    let series = with_records_of(text).unwrap();
    let names = series.iter().flat_map(|(name, labels)| labels.iter().chain([name]));
    names.filter(|name| text.contains(name.as_str())).cloned().collect()
}

#[test]
fn the_alerts_that_operators_know_keep_their_names_groups_intervals_and_labels() {
    let rules = files::rules(&files::text(ALERTS));
    let known: Vec<String> = rules
        .iter()
        .filter(|rule| {
            !["amd_gpu_health", "amd_gpu_guards", "amd_gpu_recorded"].contains(&rule.group.as_str())
        })
        .map(|rule| {
            let labels = rule.pairs("labels").into_iter().map(|(key, value)| format!(" {key}={value}"));
            let (group, every, lasts) = (&rule.group, &rule.interval, rule.text("for").unwrap_or_default());
            format!("{group} {every} {} {lasts}{}", rule.name(), labels.collect::<String>())
        })
        .collect();
    let expected = [
        "amd_gpu_critical 30s AMDGPUMemoryError 0m severity=critical category=amd",
        "amd_gpu_critical 30s AMDGPUHang 0m severity=critical category=amd",
        "amd_gpu_warning 60s AMDGPUHighTemperature 5m severity=warning category=amd",
        "amd_gpu_warning 60s AMDGPUThermalThrottling 5m severity=warning category=amd",
        "amd_gpu_warning 60s AMDGPUMemoryUsageHigh 10m severity=warning category=amd",
    ];
    assert_eq!(known, expected);
}

#[test]
fn each_alert_says_what_where_what_to_do_and_where_its_runbook_is() {
    let runbooks = files::text("docs/metrics.md");
    for rule in files::rules(&files::text(ALERTS)).iter().filter(|rule| !rule.is_record()) {
        let name = rule.name();
        let annotations = rule.pairs("annotations");
        let keys: Vec<&str> = annotations.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["summary", "description", "action", "runbook"], "{name}");
        let base =
            "{{ or $externalLabels.amd_runbooks \"file:///usr/share/doc/rocworker/docs/metrics.md\" }}";
        assert_eq!(annotations[3].1, format!("{base}#{}", name.to_lowercase()));
        assert!(runbooks.lines().any(|line| line == format!("### {name}")), "{name} has no runbook");
        let labels: Vec<String> = rule.pairs("labels").into_iter().map(|(key, _)| key).collect();
        assert_eq!(labels, ["severity", "category"], "{name}");
        assert!(!annotations[2].1.contains("aami"), "{name} names a program of another project");
    }
    let known: BTreeSet<String> =
        files::rules(&files::text(ALERTS)).iter().map(|rule| rule.name().to_owned()).collect();
    for heading in runbooks.lines().filter_map(|line| line.strip_prefix("### AMDGPU")) {
        assert!(
            known.contains(&format!("AMDGPU{heading}")),
            "docs/metrics.md has a runbook of no alert: {heading}"
        );
    }
}

/// DCGM's names of the source's map.
#[test]
fn the_recording_rules_give_dcgms_eight_names() {
    let rules = files::rules(&files::text(DCGM));
    let names: Vec<&str> = rules.iter().map(Rule::name).collect();
    let fields = [
        "GPU_TEMP",
        "GPU_UTIL",
        "MEM_COPY_UTIL",
        "FB_USED",
        "FB_TOTAL",
        "POWER_USAGE",
        "PCIE_TX_THROUGHPUT",
        "PCIE_RX_THROUGHPUT",
    ];
    assert_eq!(names, fields.map(|field| format!("DCGM_FI_DEV_{field}")));
    // The table of metrics names these equivalents, too.
    for rule in &rules {
        let is_named = |metric: &&&telemetry::metric::Metric| {
            rule.expression().contains(metric.name)
                && metric.dcgm.split(", ").any(|field| field == rule.name())
        };
        assert!(telemetry::metrics::ALL.iter().find(is_named).is_some(), "{}", rule.name());
    }
}
