//! Whether every test of a real component really ran.
//!
//! Such a test is a function named `real_*`. Its helper writes the test's name to the file that `ROCWORKER_RAN` names
//! once everything that it needs is there. Without `ROCWORKER_FULL=1` the helper says why it skips the test and returns.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Compares the tests that there are with those that ran.
///
/// # Errors
/// One that names each test that did not run, a line each.
pub(crate) fn check(ran: &Path, tests: &[String]) -> Result<()> {
    let ran = std::fs::read_to_string(ran).with_context(|| format!("reading {}", ran.display()))?;
    let complaints = complaints(&ran, tests);
    if !complaints.is_empty() {
        bail!("\n  {}\n", complaints.join("\n  "));
    }
    println!("{} tests of real components ran", tests.iter().filter(|test| is_real(test)).count());
    Ok(())
}

/// The name of every test, `module::function`, from the answer of `cargo nextest list --message-format json`.
pub(crate) fn tests_in(answer: &str) -> Result<Vec<String>> {
    let answer: Value = serde_json::from_str(answer).context("reading nextest's list of the tests")?;
    let suites =
        answer["rust-suites"].as_object().context("nextest's list of the tests has no rust-suites")?;
    let mut tests = Vec::new();
    for (program, content) in suites {
        let cases = content["testcases"].as_object();
        let cases = cases.with_context(|| format!("nextest's list has no testcases for {program}"))?;
        tests.extend(cases.keys().cloned());
    }
    Ok(tests)
}

fn complaints(ran: &str, tests: &[String]) -> Vec<String> {
    let ran: BTreeSet<&str> = ran.lines().map(function).collect();
    let mut known = BTreeSet::new();
    let mut complaints = Vec::new();
    for name in tests.iter().filter(|test| is_real(test)).map(|test| function(test)) {
        if !known.insert(name) {
            complaints.push(format!("{name}: two tests have this name, so one would hide the other"));
        }
        if !ran.contains(name) {
            complaints.push(format!("{name}: did not run: it never said that it has what it needs"));
        }
    }
    let unknown = ran.difference(&known);
    complaints.extend(unknown.map(|name| format!("{name}: said that it ran, but no test has this name")));
    complaints
}

fn is_real(test: &str) -> bool {
    function(test).starts_with("real_")
}

/// The function of a test's path, `module::function`.
fn function(test: &str) -> &str {
    test.rsplit("::").next().unwrap_or(test)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ran: &str, tests: &[&str]) -> Vec<String> {
        complaints(ran, &tests.iter().map(ToString::to_string).collect::<Vec<_>>())
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
    fn nextests_list_gives_every_name_and_another_format_is_an_error() {
        let answer = r#"{"rust-suites":{"xtask":{"testcases":{"a::real_b":{"ignored":true},"c":{}}},
            "root":{"testcases":{}}}}"#;
        assert_eq!(tests_in(answer).unwrap(), ["a::real_b", "c"]);
        for other in ["", "{}", r#"{"rust-suites":{"xtask":{}}}"#] {
            assert!(tests_in(other).is_err(), "{other}");
        }
    }
}
