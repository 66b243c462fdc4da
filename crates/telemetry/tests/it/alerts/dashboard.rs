//! The dashboard: what its panels name, and that none of them shows what is unknown as well.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use support::real;
use support::said::Said;
use telemetry::metrics::{
    ALL, BUILD, FAN_MAX, PROCESS_CU, PROCESS_QUEUES, XGMI_LINKS, XGMI_SPEED, XGMI_WIDTH,
};

use crate::alerts::emitted::{Labels, Series, with_recorded};
use crate::alerts::expression::labels_of;
use crate::alerts::files;

const DASHBOARD: &str = "deploy/grafana/rocworker.json";
/// A Python with Grafana's SDK, which `cargo xtask test` makes.
const SDK: &str = "ROCWORKER_GRAFANA_SDK";
/// The text of a panel whose query returns nothing.
const NO_DATA: &str = "no data";

fn dashboard() -> Value {
    serde_json::from_str(&files::text(DASHBOARD)).unwrap()
}

/// The dashboard's panels without the headings of rows.
fn panels(dashboard: &Value) -> Vec<&Value> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    panels.filter(|panel| panel["type"] != "row").collect()
}

/// The labels that a legend names as `{{label}}`.
fn labels_in(legend: &str) -> Labels {
    let names = legend.split("{{").skip(1);
    names.map(|rest| rest.split("}}").next().unwrap().trim().to_owned()).collect()
}

/// The fault in one of Grafana's expressions, whose variables stand in strings and as a range.
fn fault(expression: &str, named: &Labels, series: &Series) -> Option<String> {
    let expression = expression.replace("$__rate_interval", "5m");
    match labels_of(&expression, series) {
        Ok(labels) => {
            named.difference(&labels).next().map(|unknown| format!("{expression}: no label {unknown}"))
        }
        Err(fault) => Some(fault),
    }
}

/// The dashboard's expressions, each with the labels that stand beside it.
fn queries(dashboard: &Value) -> Vec<(String, Labels)> {
    let targets = panels(dashboard).into_iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut queries: Vec<_> =
        targets.map(|target| (text(&target["expr"]), labels_in(&text(&target["legendFormat"])))).collect();
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    for variable in variables.filter(|variable| variable["type"] == "query") {
        let query = text(&variable["query"]["query"]);
        let asked = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')).unwrap();
        let (selector, label) = asked.rsplit_once(", ").unwrap();
        queries.push((selector.to_owned(), [label.to_owned()].into()));
    }
    queries
}

/// The dashboard's expressions as Prometheus takes them, for all machines and GPUs.
pub(crate) fn expressions() -> Vec<String> {
    let queries = queries(&dashboard()).into_iter().map(|(expression, _)| expression);
    let plain = |expression: String| {
        ["instance", "gpu"].iter().fold(expression, |text, name| text.replace(&format!("${name}"), ".*"))
    };
    queries.map(|expression| plain(expression).replace("$__rate_interval", "5m")).collect()
}

#[test]
fn panels_and_variables_name_only_metrics_and_labels_that_are_emitted_or_recorded() {
    let series = with_recorded();
    let queries = queries(&dashboard());
    assert!(queries.len() > 50);
    let faults: Vec<String> =
        queries.iter().filter_map(|(expression, labels)| fault(expression, labels, &series)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_misspelt_metric_or_label_in_any_panel_is_found() {
    let series = with_recorded();
    for (expression, named) in queries(&dashboard()) {
        let (metric, _) = series.iter().rfind(|(name, _)| expression.contains(*name)).unwrap();
        let misspelt = expression.replacen(metric.as_str(), &format!("{metric}x"), 1);
        assert!(fault(&misspelt, &named, &series).is_some(), "{misspelt}");
        let matched = ["instance=~", "gpu=~", "limit=", "severity="].into_iter();
        for label in matched.filter(|label| expression.contains(label)) {
            let misspelt = expression.replacen(label, &format!("x{label}"), 1);
            assert!(fault(&misspelt, &named, &series).is_some(), "{misspelt}");
        }
        let with_another = &named | &Labels::from(["sensr".to_owned()]);
        assert!(fault(&expression, &with_another, &series).is_some(), "{expression}");
    }
}

#[test]
fn the_dashboard_shows_each_part_of_a_machine() {
    let names: BTreeSet<String> =
        queries(&dashboard()).into_iter().map(|(expression, _)| expression).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let text = all.join("\n");
    // What the panels leave out: details that `rocworker metrics` has, and the worker of HIP, which few machines have.
    let left_out = [&FAN_MAX, &PROCESS_CU, &PROCESS_QUEUES, &XGMI_LINKS, &XGMI_SPEED, &XGMI_WIDTH, &BUILD]
        .map(|metric| metric.name);
    let is_left_out = |name: &str| left_out.contains(&name) || name.starts_with("rocm_hip_");
    for metric in ALL {
        let (is_shown, is_left_out) = (text.contains(metric.name), is_left_out(metric.name));
        assert!(is_shown || is_left_out, "{}: add a panel, or add it to left_out", metric.name);
        assert!(!is_shown || !is_left_out, "{}: a panel shows it: take it out of left_out", metric.name);
    }
}

#[test]
fn a_panel_without_an_answer_says_so_and_is_not_green() {
    let dashboard = dashboard();
    for panel in panels(&dashboard) {
        let title = panel["title"].as_str().unwrap();
        let defaults = &panel["fieldConfig"]["defaults"];
        assert_eq!(defaults["noValue"], NO_DATA, "{title}");
        if panel["type"] != "stat" {
            continue;
        }
        let mapping = &defaults["mappings"][0];
        assert_eq!(mapping["type"], "special", "{title}");
        assert_eq!(mapping["options"]["match"], "null+nan", "{title}");
        assert_eq!(mapping["options"]["result"]["text"], NO_DATA, "{title}");
        assert_eq!(mapping["options"]["result"]["color"], "text", "{title}: the theme's plain colour");
        // A query that answers 0 for what is absent would show it as well.
        let expression = panel["targets"][0]["expr"].as_str().unwrap();
        assert!(!expression.contains("vector("), "{title}: {expression}");
    }
}

#[test]
fn each_panel_asks_the_selected_data_source_and_has_a_place_of_its_own() {
    let dashboard = dashboard();
    let mut ids = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = &panel["title"];
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}");
        let [x, y, width, height] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(x + width <= 24, "{title}");
        for cell in (x..x + width).flat_map(|column| (y..y + height).map(move |line| (column, line))) {
            assert!(taken.insert(cell), "{title} covers another panel");
        }
    }
    for panel in panels(&dashboard) {
        let sources = panel["targets"].as_array().unwrap().iter().chain([panel]);
        for source in sources.map(|asked| &asked["datasource"]["uid"]) {
            assert_eq!(source, "${datasource}", "{}", panel["title"]);
        }
        for expression in
            panel["targets"].as_array().unwrap().iter().map(|target| target["expr"].as_str().unwrap())
        {
            assert!(expression.contains(r#"instance=~"$instance""#), "{}: {expression}", panel["title"]);
        }
    }
}

#[test]
fn real_grafana_sdk_reads_the_dashboard_and_loses_nothing() {
    let Some([sdk]) = real::require_made([SDK], &[]) else { return };
    let reader = files::path("crates/telemetry/tests/it/alerts/read_dashboard.py");
    let read = |dashboard: &std::path::Path| {
        let mut python = Command::new(sdk.join("bin/python"));
        Said::from(python.arg(&reader).arg(dashboard).output().unwrap())
    };
    let output = read(&files::path(DASHBOARD)).well();
    assert_eq!(output, format!("{} panels\n", dashboard()["panels"].as_array().unwrap().len()));
    // The reader is no yes-man: a key that Grafana does not know is found.
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("misspelt.json");
    std::fs::write(&place, files::text(DASHBOARD).replacen("\"reduceOptions\"", "\"reduceOption\"", 1))
        .unwrap();
    let output = read(&place).badly();
    assert!(output.contains("reduceOption"), "{output}");
}
