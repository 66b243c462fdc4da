//! docs/health.md says what rules.toml says.

use std::fmt::Write as _;

use gpu_health::rules::{PATH, Rule, Rules};
use support::document::{assert_has_rows, text};

fn list(rules: &Rules) -> String {
    let mut list = String::new();
    for Rule { id, points, when, .. } in &rules.rules {
        writeln!(list, "- `{id}` ({points}): {when}").unwrap();
    }
    list
}

#[test]
fn the_page_of_health_has_each_rule_and_the_thresholds() {
    let rules = Rules::built_in();
    let page = text("docs/health.md");
    assert_has_rows("docs/health.md", &list(&rules));
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
