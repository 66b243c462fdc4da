//! dpkg's database as we read it, held against what dpkg's own programs say.

use std::cmp::Ordering;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use reconcile::dpkg::{Database, compare};
use root::Root;
use support::real;

fn here() -> Database {
    Database::read(&Root::open(Path::new("/")).unwrap()).unwrap()
}

#[test]
fn real_every_package_of_this_system_is_read_as_dpkg_tells_it() {
    if !real::require(&["dpkg-query"]) {
        return;
    }
    let format =
        "--showformat=${Package}\t${Architecture}\t${Version}\t${db:Status-Status}\t${db:Status-Want}\n";
    let output = Command::new("dpkg-query").args(["--show", format]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let database = here();
    let mut names = Vec::new();
    for line in text.lines() {
        let [name, architecture, version, status, want] =
            line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let named = if architecture == "all" { name.to_owned() } else { format!("{name}:{architecture}") };
        let there = database.there(&named).unwrap();
        let expected = (status != "not-installed").then_some((version, status, want));
        assert_eq!(
            there.map(|it| (it.version, it.status.to_string(), format!("{:?}", it.selection).to_lowercase())),
            expected.map(|(version, status, want)| (version.to_owned(), status.to_owned(), want.to_owned())),
            "{line}"
        );
        if !matches!(status, "not-installed" | "config-files") {
            names.push(name);
        }
    }
    assert!(names.len() > 50, "{names:?}");
    names.sort_unstable();
    names.dedup();
    // Packages of the machine's own architecture have the bare name.
    let mut ours: Vec<String> =
        database.names().into_iter().map(|it| it.split(':').next().unwrap().to_owned()).collect();
    ours.dedup();
    assert_eq!(ours, names);
    assert_eq!(database.there("no-such-package").unwrap(), None);
    assert_eq!(database.there("no.such*package").unwrap(), None);
}

/// dpkg's own comparison: only the exit code of its calls tells the result.
fn by_dpkg(a: &str, b: &str) -> Ordering {
    let is = |operator| {
        let status = Command::new("dpkg").args(["--compare-versions", a, operator, b]).status().unwrap();
        status.success()
    };
    match (is("lt"), is("gt")) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

#[test]
fn real_versions_are_compared_as_dpkg_compares_them() {
    if !real::require(&["dpkg"]) {
        return;
    }
    // AMD's, Ubuntu's and Debian's of what this is about.
    let known = [
        "1.0.0.70203-81~24.04",
        "5.7.1-3build1",
        "1:6.12.12.60402-2194681.24.04",
        "7.3.0.60302-66~22.04",
        "6.3.2",
        "2.36-9+deb12u14",
        "1.0~rc1",
        "1.0",
        "1.0-0",
        "1.0-1",
        "0:1.0",
        "1.0+b1",
        "1.0a",
        "1.0.",
        "00001.0",
        "",
    ];
    for a in known {
        for b in known.iter().filter(|b| !b.is_empty() && !a.is_empty()) {
            assert_eq!(compare(a, b), by_dpkg(a, b), "{a} and {b}");
        }
    }
    let version = "([0-9]:)?[0-9][0-9a-cA-B.+~]{0,6}(-[0-9a-b.+~]{1,4})?";
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new(config)
        .run(&(version, version), |(a, b)| {
            prop_assert_eq!(compare(&a, &b), by_dpkg(&a, &b), "{} and {}", a, b);
            Ok(())
        })
        .unwrap();
}
