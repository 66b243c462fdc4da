//! docs/health.md says what rules.toml says.

use std::fmt::Write as _;

use std::collections::BTreeMap;

use gpu_health::rules::{PATH, Rules};
use kernel_log::knowledge::Knowledge;
use support::document::text;

fn table(rules: &Rules) -> String {
    let mut table =
        "| rule | points | group | when | meaning |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for rule in &rules.rules {
        let group = rule.group.as_ref().map_or_else(String::new, |group| format!("`{group}`"));
        let (id, points, when, reason) = (&rule.id, rule.points, &rule.when, &rule.reason);
        writeln!(table, "| `{id}` | {points} | {group} | {when} | {reason} |").unwrap();
    }
    table
}

#[test]
fn the_page_of_health_has_each_rule_and_the_thresholds() {
    let rules = Rules::built_in();
    let page = text("docs/health.md");
    let table = table(&rules);
    assert!(
        page.contains(&table),
        "docs/health.md lacks this table of crates/gpu-health/rules.toml:\n{table}"
    );
    let Rules { degraded_below, unhealthy_below, hold_s, .. } = rules;
    for sentence in [
        format!("| `healthy` | {degraded_below} to 100 |"),
        format!("| `degraded` | {unhealthy_below} to {} |", degraded_below - 1),
        format!("| `unhealthy` | 0 to {} |", unhealthy_below - 1),
        format!("`hold_s` ({hold_s} s)"),
        PATH.to_owned(),
    ] {
        assert!(page.contains(&sentence), "docs/health.md lacks {sentence:?}");
    }
}

#[test]
fn each_rule_is_explained() {
    let page = text("docs/health.md");
    let why = page.split_once("\n## Why these points\n").unwrap().1.split("\n## ").next().unwrap();
    for rule in Rules::built_in().rules {
        assert!(
            why.contains(&format!("`{}`", rule.id)),
            "docs/health.md does not say why {} is as it is",
            rule.id
        );
    }
}

#[test]
fn the_page_names_each_message_of_each_class() {
    let mut ids: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for message in Knowledge::built_in().unwrap().messages() {
        let class = toml::Value::try_from(message.class).unwrap();
        ids.entry(class.as_str().unwrap().to_owned()).or_default().push(format!("`{}`", message.id));
    }
    let mut table = "| class | messages |\n| --- | --- |\n".to_owned();
    for (class, ids) in ids {
        writeln!(table, "| `{class}` | {} |", ids.join(", ")).unwrap();
    }
    assert!(text("docs/health.md").contains(&table), "docs/health.md lacks this table:\n{table}");
}
