//! Checks that every test of a real component really ran.
//!
//! Such a test is a function named `real_*`. Its helper writes the test's name to the file that `ROCWORKER_RAN` names
//! once everything that it needs is there. Without `ROCWORKER_FULL=1` the helper says why it skips the test and returns.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A test as nextest lists it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Test {
    /// `module::function`.
    name: String,
    /// `#[ignore]`: it runs with `--all` alone.
    is_ignored: bool,
}

/// Compares the tests that there are with those that ran. `all`: those that are ignored had to run, too.
///
/// # Errors
/// Names each test that did not run, one in a line.
pub(crate) fn check(ran: &Path, tests: &[Test], all: bool) -> Result<()> {
    let ran = std::fs::read_to_string(ran).with_context(|| format!("reading {}", ran.display()))?;
    let complaints = complaints(&ran, tests, all);
    if !complaints.is_empty() {
        bail!("\n  {}\n", complaints.join("\n  "));
    }
    let real = || tests.iter().filter(|test| test.is_real());
    println!("{} tests of real components ran", real().filter(|test| test.is_due(all)).count());
    for test in real().filter(|test| !test.is_due(all)) {
        println!("runs with --all alone: {}", test.name);
    }
    Ok(())
}

/// Every test in the answer of `cargo nextest list --message-format json`.
pub(crate) fn tests_in(answer: &str) -> Result<Vec<Test>> {
    let answer: Value = serde_json::from_str(answer).context("reading nextest's list of the tests")?;
    let suites =
        answer["rust-suites"].as_object().context("nextest's list of the tests has no rust-suites")?;
    let mut tests = Vec::new();
    for (program, content) in suites {
        let cases = content["testcases"].as_object();
        let cases = cases.with_context(|| format!("nextest's list has no testcases for {program}"))?;
        for (name, case) in cases {
            let ignored = case["ignored"].as_bool();
            let is_ignored =
                ignored.with_context(|| format!("nextest's list does not say whether {name} is ignored"))?;
            tests.push(Test { name: name.clone(), is_ignored });
        }
    }
    Ok(tests)
}

fn complaints(ran: &str, tests: &[Test], all: bool) -> Vec<String> {
    let ran: BTreeSet<&str> = ran.lines().map(function).collect();
    let mut known = BTreeSet::new();
    let mut complaints = Vec::new();
    for test in tests.iter().filter(|test| test.is_real()) {
        let name = function(&test.name);
        if !known.insert(name) {
            complaints.push(format!("{name}: two tests have this name, so one would hide the other"));
        }
        if test.is_due(all) && !ran.contains(name) {
            complaints.push(format!("{name}: did not run: it never said that it has what it needs"));
        }
    }
    let unknown = ran.difference(&known);
    complaints.extend(unknown.map(|name| format!("{name}: said that it ran, but no test has this name")));
    complaints
}

impl Test {
    fn is_real(&self) -> bool {
        function(&self.name).starts_with("real_")
    }

    fn is_due(&self, all: bool) -> bool {
        all || !self.is_ignored
    }
}

/// The function of a test's path, `module::function`.
fn function(test: &str) -> &str {
    test.rsplit("::").next().unwrap_or(test)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(name: &str) -> Test {
        Test { name: name.to_owned(), is_ignored: false }
    }

    fn judged(ran: &str, tests: &[&str]) -> Vec<String> {
        complaints(ran, &tests.iter().map(|name| test(name)).collect::<Vec<_>>(), false)
    }

    #[test]
    fn a_run_in_which_every_real_test_ran_gives_no_complaint() {
        let tests = ["wrapper::real_runc_obeys", "real_podman_obeys", "unreal", "really"];
        let ran = "wrapper::real_runc_obeys\nreal_podman_obeys\nreal_podman_obeys\n";
        assert_eq!(judged(ran, &tests), [""; 0]);
        assert_eq!(judged("", &["unreal"]), [""; 0]);
    }

    #[test]
    fn each_test_that_did_not_run_or_is_not_known_is_named() {
        for (ran, tests, expected) in [
            ("", &["m::real_a"][..], "real_a: did not run"),
            ("real_b", &[], "real_b: said that it ran"),
            ("real_a", &["m::real_a", "real_a"], "real_a: two tests"),
        ] {
            let said = judged(ran, tests);
            assert!(said.len() == 1 && said[0].starts_with(expected), "{said:?}");
        }
    }

    #[test]
    fn an_ignored_test_is_due_with_all_alone() {
        let tests = [Test { is_ignored: true, ..test("m::real_slow") }];
        for (ran, all, complained) in
            [("", false, 0), ("", true, 1), ("real_slow", true, 0), ("real_slow", false, 0)]
        {
            assert_eq!(complaints(ran, &tests, all).len(), complained, "{ran} {all}");
        }
    }

    #[test]
    fn nextests_list_gives_every_test_and_another_format_is_an_error() {
        let answer = r#"{"rust-suites":{"xtask":{"testcases":{"a::real_b":{"ignored":true},"c":{"ignored":false}}},
            "root":{"testcases":{}}}}"#;
        let ignored = Test { is_ignored: true, ..test("a::real_b") };
        assert_eq!(tests_in(answer).unwrap(), [ignored, test("c")]);
        let without = r#"{"rust-suites":{"xtask":{"testcases":{"c":{}}}}}"#;
        for other in ["", "{}", r#"{"rust-suites":{"xtask":{}}}"#, without] {
            assert!(tests_in(other).is_err(), "{other}");
        }
    }
}
