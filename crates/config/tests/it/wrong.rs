//! What a person is told of a configuration that is wrong.

use std::path::Path;

use config::{Config, Error};

/// Each text of wrong.txt, and what is reported of it: the line and the problem.
fn cases() -> Vec<(String, &'static str)> {
    let blocks = include_str!("wrong.txt").split("\n\n").filter(|block| block.contains("=> "));
    let case = |block: &'static str| {
        let (text, report) = block.split_once("=> ").unwrap();
        (text.to_owned(), report.trim_end())
    };
    blocks.map(case).collect()
}

fn report(text: &str) -> String {
    match Config::parse(Path::new("/etc/rocworker/config.yaml"), text) {
        Ok(config) if config.spellings.is_empty() => "valid".to_owned(),
        Ok(config) => config.spellings.join(" ").replace("/etc/rocworker/config.yaml:", ""),
        Err(Error::Wrong { line, problem, .. }) => format!("{line}: {problem}"),
        Err(other) => panic!("{text:?}: {other}"),
    }
}

#[test]
fn a_mistake_is_reported_with_its_line_its_key_what_is_there_and_what_may_be() {
    let reports: Vec<_> =
        cases().into_iter().map(|(text, expected)| (report(&text), expected, text)).collect();
    assert!(reports.len() > 60, "{}", reports.len());
    let other: Vec<_> = reports.iter().filter(|(report, expected, _)| report != expected).collect();
    let shown =
        other.iter().map(|(report, expected, text)| format!("{text}=> {report}\ninstead of {expected}\n\n"));
    assert!(other.is_empty(), "{}", shown.collect::<String>());
    let secrets = ["secret", "token"];
    assert!(reports.iter().all(|(report, ..)| secrets.iter().all(|secret| !report.contains(secret))));
}

#[test]
fn each_key_that_is_proposed_is_one() {
    let keys = keys_beneath("");
    for proposed in include_str!("wrong.txt").split(": did you mean ").skip(1) {
        let (key, _) = proposed.split_once(['?', ',']).unwrap();
        assert!(keys.iter().any(|it| it == key), "{key}");
    }
}

/// The keys beneath `section`, which the sentence about an unknown one lists, and those beneath them.
fn keys_beneath(section: &str) -> Vec<String> {
    let report = report(&nested(&format!("{section}zzzzzz"), "x"));
    let Some((_, keys)) =
        report.split_once(" is no key: the keys ").and_then(|(_, it)| it.split_once("are "))
    else {
        return Vec::new();
    };
    let keys = keys.split(", ").map(|key| format!("{section}{key}"));
    keys.flat_map(|key| [vec![key.clone()], keys_beneath(&format!("{key}."))].concat()).collect()
}

/// `value` at `key`, such as `daemon.settle-s`.
fn nested(key: &str, value: &str) -> String {
    let lines = key.split('.').enumerate().map(|(depth, key)| format!("\n{}{key}:", "  ".repeat(depth)));
    format!("{} {value}\n", lines.collect::<String>())
}

#[test]
fn of_each_key_a_wrong_value_is_reported_in_the_words_of_the_file() {
    let keys = keys_beneath("");
    for known in
        ["tag", "daemon.settle-s", "repositories.rocm.url", "wrapper.edits.shm-size", "rocm.therock.family"]
    {
        assert!(keys.iter().any(|key| key == known), "{known} is not among {keys:?}");
    }
    let rusts = [
        "expected", "invalid", "struct", "enum", "newtype", "untagged", "sequence", "u32", "variant", "field",
    ];
    for key in &keys {
        let reports =
            ["[[a]]", "{zzzzzz: {a: b}}", "often", "1.5", "[]"].map(|value| report(&nested(key, value)));
        let wrong: Vec<_> = reports.iter().filter(|report| *report != "valid").collect();
        assert!(!wrong.is_empty(), "{key} takes everything");
        for report in wrong {
            let (line, problem) = report.split_once(": ").unwrap();
            let section = key.split('.').next().unwrap();
            assert!(line.parse::<usize>().unwrap() > 1 && problem.contains(section), "{key}: {report}");
            assert!(!rusts.iter().any(|word| problem.contains(word)), "{key}: {report}");
        }
    }
}

/// A configuration without the text that it was read from.
fn meaning(text: &str) -> String {
    let config = Config::parse(Path::new("/etc/rocworker/config.yaml"), text);
    let config = config.unwrap_or_else(|error| panic!("{text:?}: {error}"));
    format!("{config:?}").split_once(" source: ").unwrap().0.to_owned()
}

#[test]
fn a_key_without_a_value_means_its_default() {
    // The section of an archive asks for one, whatever its keys say.
    let keys = keys_beneath("").into_iter().filter(|key| !key.starts_with("rocm.therock."));
    let texts = keys.flat_map(|key| ["", "# 30", "~", "null"].map(|value| nested(&key, value)));
    let flow = ["daemon: {settle-s: , unit: true}\n".to_owned()];
    let other: Vec<_> = texts.chain(flow).filter(|text| meaning(text) != meaning("")).collect();
    assert!(other.is_empty(), "{other:#?}");
}

#[test]
fn a_file_has_as_many_values_as_its_length_allows_and_none_by_an_alias() {
    let hosts = (0..3300).map(|nth| format!("h{nth}, ")).collect::<String>();
    assert_eq!(report(&format!("inventory: {{groups: {{all: [{hosts}]}}}}\n")), "valid");
    assert_eq!(report(&format!("tag: [{}]\n", "a,".repeat(30_000))), "valid");
    let words = (0..10_000).map(|nth| format!("t{nth},")).collect::<String>();
    assert_eq!(report(&format!("tag: \"{words}\"\n")), "valid");
    let alias = "2: an alias (*NAME) stands here: write the value itself";
    assert_eq!(report("gpu-device-ids: &a [0]\ntag: *a\n"), alias);
}

/// A file that a killed editor leaves.
#[test]
fn the_end_of_a_text_can_be_missing() {
    let text = include_str!("../../../../templates/config.yaml");
    for (end, _) in text.char_indices().step_by(7) {
        let report = report(&text[..end]);
        let line = report.split(':').next().unwrap().parse::<usize>();
        assert!(
            report == "valid" || line.is_ok_and(|line| (1..=text.lines().count()).contains(&line)),
            "{report}"
        );
    }
}
