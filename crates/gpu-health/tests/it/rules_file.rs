//! What an operator can write into a file of rules, and the errors for a wrong file.

use gpu_health::rules::Rules;

const HEAD: &str = "degraded_below = 90\nunhealthy_below = 50\nhold_s = 600\n";
const RULE: &str = "[[rule]]\nid = \"a\"\npoints = 5\nreason = \"It is so.\"\nlog = { class = \"hang\" }\n";

fn error(text: &str) -> String {
    Rules::parse("/etc/rules.toml", text).unwrap_err().to_string()
}

#[test]
fn a_file_of_one_rule_is_read() {
    let rules = Rules::parse("x", &format!("{HEAD}{RULE}")).unwrap();
    assert_eq!(
        (rules.degraded_below, rules.unhealthy_below, rules.hold_s, rules.rules.len()),
        (90, 50, 600, 1)
    );
}

/// A case is one part of the one-rule file with its replacement, the line of the error, and its words.
#[test]
fn each_mistake_is_named_with_its_line_and_what_to_do() {
    let log = "log = { class = \"hang\" }";
    let metric = |of: &str| format!("metric = {{ {of} }}");
    let cases: &[(&str, &str, usize, &str)] = &[
        ("points = 5", "points = 0", 6, "points is 0: write 1 to 100"),
        ("points = 5", "points = 101", 6, "points is 101: write 1 to 100"),
        ("points = 5", "points = -7", 6, "points is -7: write 1 to 100"),
        ("points = 5", "points = 5000000000", 6, "points is 5000000000: write 1 to 100"),
        ("points = 5", "weight = 5", 6, "unknown field `weight`"),
        ("points = 5", "points = 5\ncolour = 1", 7, "unknown field `colour`"),
        ("points = 5\n", "", 4, "missing field `points`"),
        ("hold_s = 600", "hold_s = -1", 3, "hold_s is -1: write 0 to 2592000"),
        ("hold_s = 600", "hold_s = nan", 3, "nan is not a whole number"),
        ("hold_s = 600", "hold_s = 99999999999999999999", 3, "99999999999999999999 is not a whole number"),
        ("hold_s = 600", "hold_s = \"x\"", 3, "\"x\" is not a whole number"),
        ("hold_s = 600\n", "", 3, "hold_s is missing: write it above the first [[rule]]"),
        ("It is so.\"", "\"\npoints = 2026-11-23", 8, "duplicate key"),
        ("id = \"a\"", "id = 5", 5, "5 is not a text in quotes"),
        (log, "log = 5", 8, "5 is not a table in braces"),
        (
            log,
            &metric("name = \"rocm_power_usage\", above = 2026-11-23T00:00:00Z"),
            8,
            "2026-11-23T00:00:00Z is not a number",
        ),
        ("degraded_below = 90", "degraded_below = 40", 2, "unhealthy_below is 50, above degraded_below (40)"),
        ("degraded_below = 90", "degraded_below = 101", 1, "degraded_below is 101: write 1 to 100"),
        ("id = \"a\"", "id = \"A b\"", 5, "id is \"A b\": write lower-case letters"),
        ("points = 5", "points = 5\ngroup = \"\"", 7, "group is \"\": write lower-case letters"),
        ("points = 5", "points = 5\ngroup = 5", 7, "5 is not a text in quotes"),
        ("It is so.", "", 7, "reason is no sentence"),
        (log, "", 5, "rule \"a\" has no condition: write log or metric"),
        (log, "log = { class = \"pain\" }", 8, "unknown variant `pain`"),
        (log, "log = { class = \"hang\", at_least = 33 }", 8, "at_least is 33: write 1 to 32"),
        (log, "log = { class = \"hang\", within_s = 0 }", 8, "within_s is 0: write 1 to 2592000"),
        (log, "log = { class = \"hang\", open = 1 }", 8, "invalid type: integer `1`, expected a boolean"),
        (
            log,
            "log = { class = \"hang\", message = \"aca-events\" }",
            8,
            "\"aca-events\" is no message of this class: take one of hang-process, ring-timeout, ",
        ),
        (log, "log = { class = \"hang\", since = 3 }", 8, "unknown field `since`"),
        (log, &metric("name = \"rocm_x\", above = 1"), 8, "\"rocm_x\" is no reading of a card"),
        (
            log,
            &metric("name = \"rocm_gpu_health_score\", above = 1"),
            8,
            "\"rocm_gpu_health_score\" is no reading of a card",
        ),
        (log, &metric("name = \"rocm_power_usage\", above = nan"), 8, "NaN is no number to compare with"),
        (log, &metric("name = \"rocm_power_usage\", above = inf"), 8, "inf is no number to compare with"),
        (log, &metric("name = \"rocm_power_usage\""), 8, "a metric has one of above"),
        (log, &metric("name = \"rocm_power_usage\", above = 1, below = 0"), 8, "a metric has one of above"),
        (
            log,
            &metric("name = \"rocm_power_usage\", above = 1, within_s = 5"),
            8,
            "within_s belongs to grown_by",
        ),
        (log, &metric("name = \"rocm_power_usage\", grown_by = 1, within_s = 5"), 8, "is no counter"),
        (log, &metric("name = \"rocm_pcie_replays_total\", grown_by = 1"), 8, "grown_by needs within_s"),
        (log, &metric("name = \"rocm_pcie_replays_total\", grown_by = 0, within_s = 5"), 8, "grown_by is 0"),
        (
            log,
            &metric("name = \"rocm_pcie_replays_total\", grown_by = 1, within_s = -5"),
            8,
            "within_s is -5",
        ),
        (
            log,
            &metric("name = \"rocm_power_usage\", labels = { x = \"1\" }, above = 1"),
            8,
            "has no label \"x\"",
        ),
        ("[[rule]]", "[[rules]]", 4, "unknown field `rules`"),
        ("[[rule]]", "[[rule]", 4, "docs/health.md"),
        (RULE, "", 4, "no [[rule]]: write one, or remove the file"),
    ];
    let good = format!("{HEAD}{RULE}");
    for (part, instead, line, words) in cases {
        assert_eq!(good.matches(part).count(), 1, "{part}");
        let problem = error(&good.replace(part, instead));
        assert!(problem.starts_with(&format!("/etc/rules.toml, line {line}: ")), "{instead}: {problem}");
        assert!(problem.contains(words), "{instead}: {problem}");
        assert!(!problem.contains('\n'), "{problem}");
    }
}

#[test]
fn two_rules_of_one_id_are_refused_at_the_second() {
    let problem = error(&format!("{HEAD}{RULE}{RULE}"));
    assert_eq!(
        problem,
        "/etc/rules.toml, line 10: a rule above has the id \"a\", too: give this one another"
    );
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(cut in 0..6000_usize, with in "\\PC{0,12}") {
        let text = gpu_health::rules::BUILT_IN;
        let cut = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let (before, after) = text.split_at(cut);
        Rules::parse("x", &format!("{before}{with}{after}")).ok();
        Rules::parse("x", before).ok();
    }
}
