//! What dpkg-query says of packages, and versions compared as dpkg compares them.

use std::cmp::Ordering;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use reconcile::Status;
use reconcile::dpkg::{self, Database, compare};
use root::{Attributes, Root};
use support::real;

/// The database beneath a folder with this status file.
fn beneath(status: &str) -> Result<Arc<Database>, dpkg::Error> {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    root.write(dpkg::STATUS, status.as_bytes(), Attributes { mode: 0o644, owner: None }).unwrap();
    Database::read(&root)
}

fn stanza(name: &str, architecture: &str, version: &str, status: &str) -> String {
    format!("Package: {name}\nStatus: {status}\nArchitecture: {architecture}\nVersion: {version}\n\n")
}

fn version<'a>(database: &'a Database, name: &str) -> Option<&'a str> {
    database.there(name).map(|it| it.version.as_str())
}

const OK: &str = "install ok installed";

#[test]
fn of_several_architectures_the_machines_own_has_the_bare_name() {
    let text = [("dpkg", "amd64", "1"), ("lib", "i386", "1"), ("lib", "amd64", "2"), ("data", "all", "3")]
        .map(|(name, architecture, version)| {
            let same = if name == "lib" { "Multi-Arch: same\n" } else { "" };
            format!("{same}{}", stanza(name, architecture, version, OK))
        });
    let it = beneath(&text.concat()).unwrap();
    for (name, expected) in [
        ("lib", Some("2")),
        ("lib:amd64", Some("2")),
        ("lib:i386", Some("1")),
        ("lib:arm64", None),
        ("data", Some("3")),
        ("data:all", Some("3")),
        ("no-such-package", None),
        ("da*", None),
    ] {
        assert_eq!(version(&it, name), expected, "{name}");
    }
    assert_eq!(it.names().into_iter().collect::<Vec<_>>(), ["data", "dpkg", "lib", "lib:i386"]);
    let only_foreign = beneath(&(stanza("dpkg", "arm64", "1", OK) + &stanza("lib", "i386", "1", OK)));
    assert_eq!(version(&only_foreign.unwrap(), "lib"), None);
}

#[test]
fn a_package_is_on_hold_to_go_or_half_installed_as_dpkg_says() {
    let states =
        ["hold ok installed", "deinstall ok unpacked", "purge ok installed", "install reinstreq unpacked"];
    let text: String =
        states.iter().map(|state| stanza(&state.replace(' ', "-"), "all", "1", state)).collect();
    let it = beneath(&text).unwrap();
    let there = |state: &str| {
        let there = it.there(&state.replace(' ', "-")).unwrap();
        (there.status, there.is_on_hold, there.is_to_go)
    };
    let expected = [
        (Status::Installed, true, false),
        (Status::Unpacked, false, true),
        (Status::Installed, false, true),
        (Status::HalfInstalled, false, false),
    ];
    assert_eq!(states.map(there), expected);
}

#[test]
fn what_dpkg_query_does_not_understand_is_an_error_that_names_the_file() {
    for text in ["Package: tool\nStatus: install ok marvellous\nVersion: 1\n", "no field at all\n"] {
        let error = beneath(text).unwrap_err().to_string();
        assert!(error.contains("/var/lib/dpkg/status lists is not known: dpkg-query --admindir="), "{error}");
        assert!(error.contains("dpkg --audit") && !error.contains('\x1f'), "{error}");
    }
    let gone = beneath(&stanza("tool", "all", "1", "purge ok not-installed")).unwrap();
    assert_eq!(gone.there("tool"), None);
}

#[test]
fn a_link_out_of_the_root_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    root.write_link(dpkg::STATUS, Path::new("/var/lib/dpkg/status-here")).unwrap();
    assert!(matches!(Database::read(&root), Err(dpkg::Error::None(_))));
    root.write(
        "/var/lib/dpkg/status-here",
        stanza("tool", "all", "1", OK).as_bytes(),
        Attributes { mode: 0o644, owner: None },
    )
    .unwrap();
    assert_eq!(Database::read(&root).unwrap().names().into_iter().collect::<Vec<_>>(), ["tool"]);
}

#[test]
fn real_an_answer_counts_until_dpkg_writes_another_status_file() {
    if !real::require(&["dpkg-query"]) {
        return;
    }
    let root = Root::open(Path::new("/")).unwrap();
    let first = Database::read(&root).unwrap();
    assert!(first.names().len() > 50, "{:?}", first.names());
    assert!(Arc::ptr_eq(&first, &Database::read(&root).unwrap()), "dpkg-query ran for an unchanged file");
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
