//! The files of rules and dashboards in the repository.

use std::fs;
use std::path::{Path, PathBuf};

use yaml_serde::Value;

pub(crate) const ALERTS: &str = "deploy/prometheus/amd-alerts.yaml";
pub(crate) const DCGM: &str = "deploy/prometheus/amd-dcgm-rules.yaml";

pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

pub(crate) fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("reading {name}: {error}"))
}

/// The files of cases for `promtool test rules`.
pub(crate) fn cases() -> Vec<PathBuf> {
    let folder = path("crates/telemetry/tests/it/alerts/cases");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// An alert or a recording rule.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) group: String,
    pub(crate) interval: String,
    /// The rule as it is written in the file.
    pub(crate) value: Value,
}

impl Rule {
    pub(crate) fn name(&self) -> &str {
        self.text("alert").or_else(|| self.text("record")).unwrap()
    }

    pub(crate) fn is_record(&self) -> bool {
        self.text("record").is_some()
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.value.get(key)?.as_str()
    }

    pub(crate) fn expression(&self) -> &str {
        self.text("expr").unwrap()
    }

    /// Key and value of its labels or annotations.
    pub(crate) fn pairs(&self, key: &str) -> Vec<(String, String)> {
        let pairs = self.value.get(key).and_then(Value::as_mapping).into_iter().flatten();
        pairs.map(|(key, value)| (key.as_str().unwrap().into(), value.as_str().unwrap().into())).collect()
    }
}

pub(crate) fn rules(text: &str) -> Vec<Rule> {
    let file: Value = yaml_serde::from_str(text).unwrap();
    let groups = file["groups"].as_sequence().unwrap().iter();
    groups
        .flat_map(|group| {
            let of = |key: &str| group[key].as_str().unwrap().to_owned();
            let rules = group["rules"].as_sequence().unwrap().iter().cloned();
            rules
                .map(move |value| Rule { group: of("name"), interval: of("interval"), value })
                .collect::<Vec<_>>()
        })
        .collect()
}
