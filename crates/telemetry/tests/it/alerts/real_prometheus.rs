//! A real Prometheus scrapes captured and synthetic machines, and evaluates every alert, recording rule and panel.

use std::collections::{BTreeMap, BTreeSet};

use layout::Machine;
use serde_json::Value;
use support::waiting::eventually;
use support::{captures, real};

use crate::alerts::dashboard;
use crate::alerts::expression::selectors_in;
use crate::alerts::files::{self, ALERTS, DCGM};
use crate::alerts::prometheus::{Prometheus, exported, free};

/// Evaluated every second, and without waiting: a test has no quarter of an hour. promtool judges the times.
fn hurried(rules: &str) -> String {
    let hurry = |line: &str| {
        let (key, _) = line.split_once(": ").unwrap_or((line, ""));
        match key.trim() {
            "interval" => format!("{key}: 1s\n"),
            "for" => format!("{key}: 0s\n"),
            _ => format!("{line}\n"),
        }
    };
    rules.lines().map(hurry).collect()
}

fn start() -> Prometheus {
    let with_dumps = |machine: Machine| exported(&machine.put("/sys/class/devcoredump/disabled", "0\n"));
    let policy = r#"{"schema_version":1,"requests":"all","quarantine":true}"#;
    let trouble = Machine::instinct_in_trouble(2, 1).put("/etc/rocworker/wrapper.json", policy);
    let targets = [
        // phoenix' kernel keeps no dumps.
        ("phoenix", exported(&captures::phoenix())),
        ("rx7800xt", with_dumps(captures::rx7800xt())),
        ("rx6900xt", with_dumps(captures::rx6900xt())),
        ("instinct", with_dumps(Machine::instinct_with_readings(2, 8))),
        ("trouble", exported(&trouble)),
        ("bare", exported(&Machine::new())),
        ("down", free()),
    ];
    let prometheus = Prometheus::start(&targets, &[ALERTS, DCGM].map(|file| hurried(&files::text(file))));
    eventually("each target was scraped", || prometheus.query("up").len() == targets.len());
    let evaluated =
        |rules: &[Value]| -> Vec<Value> { rules.iter().map(|rule| rule["lastEvaluation"].clone()).collect() };
    // Once since then, and the rules that read the first ones' answers once more.
    for _ in 0..2 {
        let before = evaluated(&rules_of(&prometheus));
        eventually("each rule was evaluated", || {
            let now = evaluated(&rules_of(&prometheus));
            now.iter().zip(&before).all(|(now, before)| now != before)
        });
    }
    prometheus
}

fn rules_of(prometheus: &Prometheus) -> Vec<Value> {
    let answer = prometheus.api("/api/v1/rules");
    let groups = answer["groups"].as_array().unwrap().iter();
    groups.flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

#[test]
fn real_prometheus_evaluates_every_alert_over_machines_and_fires_for_those_in_trouble() {
    if !real::require(&["prometheus"]) {
        return;
    }
    let prometheus = start();
    let rules = rules_of(&prometheus);
    assert_eq!(rules.len(), 27);
    for rule in &rules {
        assert_eq!(rule["health"], "ok", "{rule}");
        // Alone too, as a person would ask.
        prometheus.query(rule["query"].as_str().unwrap());
    }

    let alerts = prometheus.api("/api/v1/alerts");
    let mut firing = BTreeSet::new();
    for alert in alerts["alerts"].as_array().unwrap() {
        let label = |name: &str| alert["labels"][name].as_str().unwrap_or("-");
        let (gpu, reason) = (label("gpu"), label("reason"));
        firing.insert(format!("{} {} gpu={gpu} reason={reason}", label("instance"), label("alertname")));
        for (key, text) in alert["annotations"].as_object().unwrap() {
            let text = text.as_str().unwrap();
            let is_whole = !text.contains("<no value>") && !text.contains("<error") && !text.contains("()");
            assert!(is_whole && !text.contains("  "), "{key}: {text}");
        }
    }
    // The captured machines and the Instincts without trouble are well, so nothing but that guard fires for them.
    let expected = [
        "bare AMDGPUNoneExported gpu=- reason=-",
        "down AMDGPUExporterDown gpu=- reason=-",
        "phoenix AMDGPUHangMissing gpu=0 reason=-",
        "trouble AMDGPUHang gpu=0 reason=-",
        "trouble AMDGPUMemoryError gpu=0 reason=-",
        "trouble AMDGPUQuarantined gpu=0 reason=-",
        "trouble AMDGPUThermalThrottling gpu=1 reason=thermal",
        "trouble AMDGPUUnhealthy gpu=0 reason=-",
    ];
    assert_eq!(firing, expected.map(str::to_owned).into());
}

#[test]
fn real_prometheus_has_an_answer_to_each_selector_but_those_that_need_more_than_a_machine() {
    if !real::require(&["prometheus"]) {
        return;
    }
    let prometheus = start();
    let (program, daemon) = ("the program, which reads in threads of its own", "rocworker's daemon");
    let work = "a process on a GPU";
    // What this test has not, and so may leave a metric without a series.
    let needs: BTreeMap<&str, &str> = [
        ("rocm_pcie_tx", program),
        ("rocm_pcie_rx", program),
        ("rocm_exporter_stuck_reads", program),
        ("rocm_daemon_published_timestamp_seconds", daemon),
        ("rocm_drift_paths", daemon),
        ("rocm_pending_restarts", daemon),
        ("rocm_lease_info", daemon),
        ("rocm_gpu_processes", work),
        ("rocm_process_vram_bytes", work),
        ("rocm_container_gpu_seconds_total", work),
        ("rocm_container_vram_peak_bytes", work),
        ("rocm_exporter_read_errors_total", "a read that fails"),
    ]
    .into();
    let rules = [ALERTS, DCGM].iter().flat_map(|file| files::rules(&files::text(file)));
    let expressions = rules.map(|rule| rule.expression().to_owned()).chain(dashboard::expressions());
    let selectors: BTreeSet<String> = expressions.flat_map(|expression| selectors_in(&expression)).collect();
    let empty = selectors.iter().filter(|selector| prometheus.query(selector).is_empty());
    let names: BTreeSet<&str> = empty.map(|selector| selector.split('{').next().unwrap()).collect();
    let unexplained: Vec<&&str> = names.iter().filter(|name| !needs.contains_key(**name)).collect();
    assert!(unexplained.is_empty(), "{unexplained:?}");

    // The recording rules: one temperature for each card, and an answer to each name but PCIe's.
    for rule in files::rules(&files::text(DCGM)) {
        let series = prometheus.query(rule.name());
        assert_eq!(series.is_empty(), rule.name().contains("PCIE"), "{}", rule.name());
    }
    let cards = prometheus.query("count by (instance) (rocm_gpu_info{partition=\"\"})");
    assert_eq!(prometheus.query("count by (instance) (DCGM_FI_DEV_GPU_TEMP)").len(), cards.len());
}
