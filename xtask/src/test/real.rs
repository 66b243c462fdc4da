//! Whether every test of a real component really ran.
//!
//! Such a test is a function named `real_*`. Its helper writes the test's name to the file that
//! `ROCWORKER_RAN` names once everything it needs is there; without `ROCWORKER_FULL=1` it says why it is
//! skipped and returns. tests/real-components lists those that must have run, a file for each test program:
//! two changes that each add a test rarely meet in one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::repository;

const LISTS: &str = "tests/real-components";

/// A test as nextest names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Test {
    /// Its program: `PACKAGE::TEST`, `PACKAGE::bin/NAME`, or `PACKAGE` for the tests within a library.
    program: String,
    /// `module::function`
    name: String,
}

/// Compares the committed lists with what ran and with the tests that there are.
///
/// # Errors
/// One that names each test that did not run or is not listed, a line each.
pub(crate) fn check(ran: &Path, tests: &[Test]) -> Result<()> {
    let lists = read_lists(&repository::top().join(LISTS))?;
    let ran = std::fs::read_to_string(ran).with_context(|| format!("reading {}", ran.display()))?;
    let complaints = complaints(&lists, &ran, tests);
    if !complaints.is_empty() {
        bail!("\n  {}\n", complaints.join("\n  "));
    }
    println!("{} tests of real components ran", lists.values().map(|list| names(list).len()).sum::<usize>());
    Ok(())
}

/// Every test, from the answer of `cargo nextest list --message-format json`.
pub(crate) fn tests_in(answer: &str) -> Result<Vec<Test>> {
    let answer: Value = serde_json::from_str(answer).context("reading nextest's list of the tests")?;
    let suites =
        answer["rust-suites"].as_object().context("nextest's list of the tests has no rust-suites")?;
    let mut tests = Vec::new();
    for (program, content) in suites {
        let cases = content["testcases"].as_object();
        let cases = cases.with_context(|| format!("nextest's list has no testcases for {program}"))?;
        tests.extend(cases.keys().map(|name| Test { program: program.clone(), name: name.clone() }));
    }
    Ok(tests)
}

/// The text of each list by its path below the folder.
fn read_lists(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut lists = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let listing = std::fs::read_dir(&next).with_context(|| format!("listing {}", next.display()))?;
        for entry in listing {
            let path = entry.with_context(|| format!("listing {}", next.display()))?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            lists.insert(path.strip_prefix(folder)?.display().to_string(), text);
        }
    }
    Ok(lists)
}

/// Where a program's tests are listed.
fn list_of(program: &str) -> String {
    match program.split_once("::") {
        Some((package, program)) => format!("{package}/{program}.txt"),
        None => format!("{program}/lib.txt"),
    }
}

fn complaints(lists: &BTreeMap<String, String>, ran: &str, tests: &[Test]) -> Vec<String> {
    let ran: BTreeSet<&str> = names(ran).into_iter().map(function).collect();
    let mut complaints = Vec::new();
    let mut known: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut everywhere = BTreeSet::new();
    for test in tests {
        let name = function(&test.name);
        if !name.starts_with("real_") {
            continue;
        }
        if !everywhere.insert(name) {
            complaints.push(format!("{name}: two tests have this name, so one would hide the other"));
        }
        known.entry(list_of(&test.program)).or_default().insert(name);
    }
    let listed: BTreeMap<&String, BTreeSet<&str>> =
        lists.iter().map(|(list, text)| (list, names(text))).collect();
    let none = BTreeSet::new();
    for (list, listed) in &listed {
        let known = known.get(*list).unwrap_or(&none);
        for name in listed.difference(known) {
            complaints.push(format!("{name}: {LISTS}/{list} names it, but there is no such test"));
        }
        for name in listed.intersection(known).filter(|name| !ran.contains(*name)) {
            complaints.push(format!("{name}: did not run: it never said that it has what it needs"));
        }
    }
    for (list, known) in &known {
        for name in known.difference(listed.get(list).unwrap_or(&none)) {
            complaints.push(format!("{name}: this test is not in {LISTS}/{list}; add it"));
        }
    }
    for name in ran.difference(&everywhere) {
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

    /// Tests are `PROGRAM NAME`, lists `(PATH, TEXT)`.
    fn judged(lists: &[(&str, &str)], ran: &str, tests: &[&str]) -> Vec<String> {
        let lists = lists.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        let tests: Vec<Test> = tests
            .iter()
            .map(|test| {
                let (program, name) = test.split_once(' ').unwrap();
                Test { program: program.to_owned(), name: name.to_owned() }
            })
            .collect();
        complaints(&lists, ran, &tests)
    }

    #[test]
    fn lists_that_ran_whole_give_no_complaint() {
        let tests = [
            "w::t wrapper::real_runc_obeys",
            "p::bin/x real_podman_obeys",
            "l real_in",
            "w::t unreal",
            "w::t really",
        ];
        let lists = [
            ("w/t.txt", "# why\n\n  real_runc_obeys\n"),
            ("p/bin/x.txt", "real_podman_obeys\n"),
            ("l/lib.txt", "real_in"),
        ];
        let ran = "wrapper::real_runc_obeys\nreal_podman_obeys\nreal_podman_obeys\nreal_in\n";
        assert_eq!(judged(&lists, ran, &tests), [""; 0]);
        assert_eq!(judged(&[("w/t.txt", "# nothing yet\n")], "", &["w::t real"]), [""; 0]);
    }

    #[test]
    fn what_did_not_run_and_what_is_not_listed_is_named() {
        let list = |text| [("w/t.txt", text)];
        for (what, lists, ran, tests, expected) in [
            ("listed, never ran", list("real_a"), "", &["w::t real_a"][..], "real_a: did not run"),
            (
                "listed, no such test",
                list("real_a"),
                "real_a",
                &[],
                "real_a: tests/real-components/w/t.txt names",
            ),
            (
                "a test, not listed",
                list(""),
                "",
                &["w::t m::real_a"],
                "real_a: this test is not in tests/real",
            ),
            (
                "a test, no list",
                list(""),
                "",
                &["w::u real_a"],
                "real_a: this test is not in tests/real-components/w/u",
            ),
            (
                "in another's list",
                list("real_a"),
                "real_a",
                &["w::u real_a"],
                "real_a: tests/real-components/w/t",
            ),
            ("no such test, not listed", list(""), "real_b", &[], "real_b: said that it ran"),
            (
                "one name twice",
                list("real_a"),
                "real_a",
                &["w::t m::real_a", "w::u real_a"],
                "real_a: two tests",
            ),
        ] {
            let said = judged(&lists, ran, tests);
            assert!(said.iter().any(|line| line.starts_with(expected)), "{what}: {said:?}");
        }
    }

    #[test]
    fn nextests_list_gives_every_name_and_another_format_is_an_error() {
        let answer = r#"{"rust-suites":{"xtask":{"testcases":{"a::real_b":{"ignored":true},"c":{}}},
            "root":{"testcases":{}}}}"#;
        let tests = tests_in(answer).unwrap();
        let test = |name: &str| Test { program: "xtask".to_owned(), name: name.to_owned() };
        assert_eq!(tests, [test("a::real_b"), test("c")]);
        for other in ["", "{}", r#"{"rust-suites":{"xtask":{}}}"#] {
            assert!(tests_in(other).is_err(), "{other}");
        }
    }

    #[test]
    fn each_list_of_the_repository_is_sorted_and_names_what_a_test_can_be_named() {
        let lists = read_lists(&repository::top().join(LISTS)).unwrap();
        assert!(lists.len() > 5, "{lists:?}");
        for (path, text) in lists {
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.is_sorted(), "{path}");
            assert!(lines.iter().all(|line| line.starts_with("real_")), "{path}");
        }
    }
}
