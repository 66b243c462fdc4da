//! What every remedy keeps to.

use serde_json::Value;

use crate::doctor::{checks, doctor, faults, laid_out, run};

/// A command or rule that would take in the nodes of another vendor's cards.
fn takes_in_others(remedy: &str) -> bool {
    let triggers = remedy.split("udevadm trigger").skip(1);
    let names_all = |rest: &str| !rest.trim_start_matches(" --action=add ").starts_with("/sys/class/");
    let is_for_all = |rule: &str| !rule.contains("DRIVERS==\"amdgpu\"");
    remedy.split("KERNEL==").skip(1).any(is_for_all)
        || remedy.contains("/dev/dri/*")
        || ["chmod", "chgrp", "--subsystem-match"].iter().any(|word| remedy.contains(word))
        || triggers.into_iter().any(names_all)
}

#[test]
fn no_remedy_takes_in_another_vendors_nodes() {
    for (remedy, takes) in [
        ("udevadm trigger", true),
        ("udevadm trigger --action=add --subsystem-match=drm", true),
        ("udevadm trigger --action=add /sys/class/drm/renderD128", false),
        ("chmod 660 /dev/dri/renderD128", true),
        ("put the line SUBSYSTEM==\"drm\", KERNEL==\"card[0-9]*\", GROUP=\"video\"", true),
        ("put KERNEL==\"card*\", DRIVERS==\"amdgpu\", then udevadm trigger", true),
        ("put KERNEL==\"card*\", DRIVERS==\"amdgpu\" and KERNEL==\"render*\"", true),
        (
            "put KERNEL==\"card*\", DRIVERS==\"amdgpu\", then udevadm trigger --action=add /sys/class/drm/card1",
            false,
        ),
    ] {
        assert_eq!(takes_in_others(remedy), takes, "{remedy}");
    }
    let mut remedies = 0;
    for (machine, _) in faults() {
        let (_, answer) = doctor(&machine);
        for remedy in checks(&answer).iter().filter_map(|check| check["remedy"].as_str()) {
            assert!(!takes_in_others(remedy), "{remedy}");
            remedies += 1;
        }
    }
    assert!(remedies > 20);
}

#[test]
fn the_word_root_is_the_user_and_never_a_directory() {
    for (machine, _) in faults() {
        let root = laid_out(&machine);
        for arguments in [&[][..], &["--canary"]] {
            let said = String::from_utf8(run(root.path(), arguments).stdout).unwrap();
            let is_word = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()) == "Root";
            assert!(!said.split_whitespace().any(is_word), "{said}");
        }
    }
}

/// Of a machine that an apply puts right, apply is what each failed check says.
#[test]
fn what_apply_mends_has_apply_for_its_remedy() {
    let root = laid_out(&crate::doctor::good());
    std::fs::remove_file(root.path().join("etc/cdi/amd.json")).unwrap();
    let (code, answer) = crate::doctor::doctor_beneath(root.path());
    let failed: Vec<&Value> = checks(&answer).iter().filter(|check| check["status"] == "failed").collect();
    assert!(code == 3 && !failed.is_empty(), "{answer:#}");
    assert!(failed.iter().all(|check| check["remedy"] == "rocworker apply"), "{failed:#?}");
}

#[test]
fn the_document_has_every_sign_that_doctor_prints() {
    let document = include_str!("../../../docs/doctor.md");
    let mut signs = std::collections::BTreeSet::new();
    for (machine, _) in faults() {
        let said = String::from_utf8(run(laid_out(&machine).path(), &[]).stdout).unwrap();
        signs.extend(said.lines().filter_map(|line| line.strip_prefix("  ")?.trim_start().chars().next()));
        let (_, counts) = said.trim_end().rsplit_once(" checks: ").unwrap();
        signs.extend(counts.split(", ").filter_map(|count| count.chars().next()));
    }
    assert_eq!(signs, "✓!✗·→".chars().collect());
    for sign in signs {
        assert!(document.contains(&format!("\n| {sign} |")), "{sign}");
    }
}

#[test]
fn the_document_describes_each_check_and_a_report_keeps_its_name() {
    let document = include_str!("../../../docs/doctor.md");
    // A heading's words are kept by no report.
    let lines = include_str!("../../../src/report/words.txt").lines().filter(|line| !line.starts_with("# "));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    // With the GPUs off doctor lists each check that it has.
    let off = crate::doctor::good().put("/etc/rocworker/config.yaml", "compute-runtime: none\n");
    let (_, answer) = crate::doctor::doctor_beneath(laid_out(&off).path());
    assert!(checks(&answer).len() >= 16, "{answer:#}");
    for name in checks(&answer).iter().map(|check| check["name"].as_str().unwrap()) {
        let is_described = |line: &str| line.starts_with("- `") && line.contains(&format!("`{name}`: "));
        assert!(document.lines().any(is_described), "docs/doctor.md: no line describes the check {name}");
        assert!(words.contains(&name), "src/report/words.txt: a report would hide the check's name {name}");
    }
}
