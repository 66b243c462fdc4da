//! Prometheus' own judgement of the rules.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::real;
use support::said::Said;
use yaml_serde::Value;

use crate::alerts::files::{self, ALERTS, DCGM, Rule};

fn promtool(arguments: &[&str], file: &Path) -> Said {
    let program = real::program("promtool").unwrap();
    Said::from(Command::new(program).args(arguments).arg(file).output().unwrap())
}

#[test]
fn real_promtool_checks_the_rules() {
    if !real::require(&["promtool"]) {
        return;
    }
    for file in [ALERTS, DCGM] {
        let output = promtool(&["check", "rules", "--lint=all", "--lint-fatal"], &files::path(file)).well();
        assert!(output.contains("SUCCESS"), "{output}");
    }
}

#[test]
fn real_promtool_fires_each_alert_and_keeps_each_silent_in_its_cases() {
    if !real::require(&["promtool"]) {
        return;
    }
    for file in files::cases() {
        promtool(&["test", "rules"], &file).well();
    }
}

/// The cases judge each rule: they fail when it never fires, and when it always does.
#[test]
#[ignore = "cargo xtask test --all"]
fn real_promtool_finds_a_rule_that_never_fires_or_always_does() {
    if !real::require(&["promtool"]) {
        return;
    }
    for rule in [ALERTS, DCGM].iter().flat_map(|file| files::rules(&files::text(file))) {
        let name = rule.name();
        let fault = fault_with(&rule, rule.expression());
        assert_eq!(fault, None, "{name}");
        for expression in ["vector(1) > 2", "vector(1)"] {
            let fault = fault_with(&rule, expression);
            assert!(fault.is_some(), "no case fails when {name} is `{expression}`");
        }
    }
}

/// The failures of the cases that name this rule, with this expression in its place. Only those cases run,
/// with the rules that record what the expression reads: promtool takes a second for all of them.
fn fault_with(rule: &Rule, expression: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut only = rule.value.clone();
    only["expr"] = expression.into();
    let every = files::rules(&files::text(ALERTS)).into_iter();
    let read = every.filter(|other| other.is_record() && rule.expression().contains(other.name()));
    let mut rules: Vec<Value> =
        read.filter(|other| other.name() != rule.name()).map(|other| other.value).collect();
    rules.push(only);
    let rules = yaml_serde::to_string(&rules).unwrap().replace('\n', "\n  ");
    let interval = &rule.interval;
    let rules = format!("groups:\n- name: only\n  interval: {interval}\n  rules:\n  {}\n", rules.trim_end());
    fs::write(folder.path().join("rules.yaml"), rules).unwrap();
    let mut judged = 0;
    let mut fault = None;
    for (number, case) in files::cases().iter().enumerate() {
        let mut case: Value = yaml_serde::from_str(&fs::read_to_string(case).unwrap()).unwrap();
        let tests = case["tests"].as_sequence_mut().unwrap();
        // A case may ask for annotations alone.
        tests.retain(|test| test.get("promql_expr_test").is_some());
        for test in tests.iter_mut() {
            let asked = test["promql_expr_test"].as_sequence_mut().unwrap();
            asked.retain(|asked| asks_for(asked["expr"].as_str().unwrap(), rule.name()));
        }
        tests.retain(|test| !test["promql_expr_test"].as_sequence().unwrap().is_empty());
        judged += tests.len();
        if tests.is_empty() {
            continue;
        }
        case["rule_files"] = Value::Sequence(vec!["rules.yaml".into()]);
        let copy = folder.path().join(format!("{number}.yaml"));
        fs::write(&copy, yaml_serde::to_string(&case).unwrap()).unwrap();
        let output = promtool(&["test", "rules"], &copy);
        fault = fault.or((!output.status.success()).then_some(output.stdout + &output.stderr));
    }
    assert!(judged > 0, "no case names {}", rule.name());
    fault
}

fn asks_for(expression: &str, rule: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    expression.split(rule).skip(1).any(ends)
}
