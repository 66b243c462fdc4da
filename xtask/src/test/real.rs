//! Whether every test of a real component really ran.
//!
//! Such a test is a function named `real_*`. Its helper writes the test's name to the file that
//! `ROCWORKER_RAN` names once everything it needs is there; without `ROCWORKER_FULL=1` it says why it is
//! skipped and returns. tests/real-components.txt is the list of those that must have run.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::repository;

const LIST: &str = "tests/real-components.txt";

/// Compares the committed list with what ran and with the tests that there are.
///
/// # Errors
/// One that names each test that did not run or is not listed, a line each.
pub(crate) fn check(ran: &Path, tests: &[String]) -> Result<()> {
    let list = repository::top().join(LIST);
    let listed = std::fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
    let ran = std::fs::read_to_string(ran).with_context(|| format!("reading {}", ran.display()))?;
    let complaints = complaints(&listed, &ran, tests);
    if !complaints.is_empty() {
        bail!("\n  {}\n", complaints.join("\n  "));
    }
    println!("{} tests of real components ran", names(&listed).len());
    Ok(())
}

/// The names of every test, from the answer of `cargo nextest list --message-format json`.
pub(crate) fn names_of_tests(answer: &str) -> Result<Vec<String>> {
    let answer: Value = serde_json::from_str(answer).context("reading nextest's list of the tests")?;
    let suites =
        answer["rust-suites"].as_object().context("nextest's list of the tests has no rust-suites")?;
    let mut names = Vec::new();
    for (suite, content) in suites {
        let cases = content["testcases"].as_object();
        let cases = cases.with_context(|| format!("nextest's list has no testcases for {suite}"))?;
        names.extend(cases.keys().cloned());
    }
    Ok(names)
}

fn complaints(listed: &str, ran: &str, tests: &[String]) -> Vec<String> {
    let listed = names(listed);
    let ran: BTreeSet<&str> = names(ran).into_iter().map(function).collect();
    let mut known = BTreeSet::new();
    let mut complaints = Vec::new();
    for name in tests.iter().map(|test| function(test)).filter(|name| name.starts_with("real_")) {
        if !known.insert(name) {
            complaints.push(format!("{name}: two tests have this name, so one would hide the other"));
        }
    }
    for name in listed.difference(&known) {
        complaints.push(format!("{name}: {LIST} names it, but there is no such test"));
    }
    for name in known.difference(&listed) {
        complaints.push(format!("{name}: this test is not in {LIST}; add it"));
    }
    for name in listed.intersection(&known).filter(|name| !ran.contains(*name)) {
        complaints.push(format!("{name}: did not run: it never said that it has what it needs"));
    }
    for name in ran.difference(&known) {
        complaints.push(format!("{name}: said that it ran, but no test has this name"));
    }
    complaints
}

/// The names in a file of one a line; blank lines and lines that begin with # are none.
fn names(text: &str) -> BTreeSet<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// The function of a test's path, `module::function`.
fn function(test: &str) -> &str {
    test.rsplit("::").next().unwrap_or(test)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(listed: &str, ran: &str, tests: &[&str]) -> Vec<String> {
        let tests: Vec<String> = tests.iter().map(ToString::to_string).collect();
        complaints(listed, ran, &tests)
    }

    #[test]
    fn a_list_that_ran_whole_gives_no_complaint() {
        let tests = ["wrapper::real_runc_obeys", "real_podman_obeys", "unreal_things", "really"];
        let listed = "# why\n\nreal_podman_obeys\n  real_runc_obeys\n";
        assert!(
            judged(listed, "wrapper::real_runc_obeys\nreal_podman_obeys\nreal_podman_obeys\n", &tests)
                .is_empty()
        );
        assert!(judged("# nothing yet\n", "", &["real"]).is_empty());
    }

    #[test]
    fn what_did_not_run_and_what_is_not_listed_is_named() {
        let cases: [(&str, &str, &str, &[&str], &str); 5] = [
            ("listed, never ran", "real_a", "", &["real_a"], "real_a: did not run"),
            ("listed, no such test", "real_a", "real_a", &[], "real_a: tests/real-components.txt names it"),
            ("a test, not listed", "", "real_a", &["m::real_a"], "real_a: this test is not in"),
            ("no such test, not listed", "", "real_b", &[], "real_b: said that it ran"),
            ("one name, two tests", "real_a", "real_a", &["m::real_a", "n::real_a"], "real_a: two tests"),
        ];
        for (what, listed, ran, tests, expected) in cases {
            let said = judged(listed, ran, tests);
            assert!(said.iter().any(|line| line.starts_with(expected)), "{what}: {said:?}");
        }
    }

    #[test]
    fn nextests_list_gives_every_name_and_another_format_is_an_error() {
        let answer = r#"{"rust-suites":{"xtask":{"testcases":{"a::real_b":{"ignored":true},"c":{}}},
            "root":{"testcases":{}}}}"#;
        assert_eq!(names_of_tests(answer).unwrap(), ["a::real_b", "c"]);
        for other in ["", "{}", r#"{"rust-suites":{"xtask":{}}}"#] {
            assert!(names_of_tests(other).is_err(), "{other}");
        }
    }
}
