//! The strings that amdgpu logs at error level, and which of them no pattern has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use kernel_log::knowledge::Knowledge;
use serde::Deserialize;
use support::real;

use crate::oracle::{SOURCES, has_in_order, source};

/// The release that is counted, and its driver.
const DRIVER: &str = "trixie-backports/drivers/gpu/drm/amd";
const TABLE: &str = include_str!("left_out.toml");

/// Calls that log at error level or above: the kernel's own, and amdgpu's wrappers of them.
const CALLS: [&str; 11] = [
    "dev_err",
    "dev_crit",
    "dev_emerg",
    "drm_err",
    "drm_file_err",
    "pr_err",
    "DRM_ERROR",
    "DRM_DEV_ERROR",
    "RAS_DEV_ERR",
    "dm_error",
    "DC_ERR",
];
/// More wrappers, which take no ending.
const WRAPPERS: [&str; 3] = ["DC_ERROR", "DC_LOG_ERROR", "__smu_msg_v1_print_err_limited"];
const ENDINGS: [&str; 4] = ["", "_once", "_ratelimited", "_RATELIMITED"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(rename = "class")]
    classes: Vec<Class>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Class {
    id: String,
    /// Why no pattern has these strings.
    why: String,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    words: Vec<String>,
    left_out: BTreeMap<String, usize>,
}

impl Class {
    fn has(&self, file: &str, text: &str) -> bool {
        let text = text.to_lowercase();
        (self.files.is_empty() || self.files.iter().any(|start| file.starts_with(start)))
            && (self.words.is_empty() || self.words.iter().any(|words| text.contains(&words.to_lowercase())))
    }
}

/// The first literal of each call that logs an error.
fn errors(text: &str) -> Vec<String> {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut found = Vec::new();
    for (at, _) in text.match_indices('(') {
        let before = text.get(..at).unwrap_or_default().trim_end();
        let start = before.bytes().rposition(|byte| !is_of_name(&byte)).map_or(0, |at| at + 1);
        let name = before.get(start..).unwrap_or_default();
        let is_call = |call: &&str| name.strip_prefix(*call).is_some_and(|ending| ENDINGS.contains(&ending));
        if CALLS.iter().any(is_call) || WRAPPERS.contains(&name) {
            found.extend(source::literals(arguments(text.get(at..).unwrap_or_default())).into_iter().next());
        }
    }
    found
}

/// Up to the parenthesis that ends a call, which stands in no literal.
fn arguments(text: &str) -> &str {
    let (mut depth, mut is_literal, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_literal,
            b'"' => is_literal = !is_literal,
            b'(' if !is_literal => depth += 1,
            b')' if !is_literal => {
                depth -= 1;
                if depth == 0 {
                    return text.get(..at).unwrap_or_default();
                }
            }
            _ => {}
        }
    }
    text
}

/// Each string with the first file that has it, in the order of the files' paths.
fn all(driver: &Path) -> BTreeMap<String, String> {
    let mut files = Vec::new();
    let mut folders = vec![driver.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|it| it == "c") => files.push(path),
                false => {}
            }
        }
    }
    files.sort();
    let mut strings = BTreeMap::new();
    for path in files {
        let file = path.strip_prefix(driver).unwrap().to_string_lossy().into_owned();
        for text in errors(&String::from_utf8_lossy(&fs::read(&path).unwrap())) {
            strings.entry(text.trim_end().to_owned()).or_insert_with(|| file.clone());
        }
    }
    strings
}

#[test]
fn real_each_error_string_of_the_newest_kernel_is_known_or_counted_with_a_reason() {
    let Some([sources]) = real::require_made([SOURCES], &[]) else { return };
    let strings = all(&sources.join(DRIVER));
    assert!(strings.len() > 1500, "{DRIVER} has {} strings", strings.len());
    let knowledge = Knowledge::built_in().unwrap();
    let patterns: Vec<Vec<&str>> = knowledge
        .messages()
        .iter()
        .flat_map(|message| &message.patterns)
        .map(|pattern| pattern.text.words().collect())
        .collect();
    // The prefix of newer kernels; older ones add a second `amdgpu: `.
    let is_known = |text: &str| {
        let line = format!("amdgpu 0000:03:00.0: [drm] *ERROR* {text}");
        patterns.iter().any(|words| has_in_order(line.as_bytes(), words.iter().copied()))
    };
    let table: Table = toml::from_str(TABLE).unwrap();
    let mut counted: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    let mut unclassed = BTreeSet::new();
    for (text, file) in strings.iter().filter(|(text, _)| !is_known(text)) {
        let subsystem = file.split('/').next().unwrap_or_default().to_owned();
        match table.classes.iter().find(|class| class.has(file, text)) {
            Some(class) => {
                counted.entry(&class.id).or_default().entry(subsystem).or_default().push(text);
            }
            None => {
                unclassed.insert(format!("{file}: {text}"));
            }
        }
    }
    assert!(unclassed.is_empty(), "give each a pattern or a class: {unclassed:#?}");

    let mut differing = String::new();
    for class in &table.classes {
        assert!(class.why.ends_with('.'), "{}: {}", class.id, class.why);
        let found = counted.remove(&*class.id).unwrap_or_default();
        let counts: BTreeMap<String, usize> =
            found.iter().map(|(subsystem, texts)| (subsystem.clone(), texts.len())).collect();
        if counts != class.left_out {
            let shown: Vec<String> = counts.iter().map(|(name, count)| format!("{name} = {count}")).collect();
            writeln!(differing, "{}: left_out = {{ {} }}", class.id, shown.join(", ")).unwrap();
            for (subsystem, texts) in &found {
                if class.left_out.get(subsystem) != Some(&texts.len()) {
                    writeln!(differing, "  {subsystem}: {texts:#?}").unwrap();
                }
            }
        }
    }
    assert!(differing.is_empty(), "tests/it/oracle/left_out.toml has other counts:\n{differing}");
}

#[test]
fn the_first_literal_of_each_call_at_error_level_is_found() {
    let source = r#"
        dev_err(adev->dev, "a %s (%d)" " and b\n", name(x), "no");
        dev_err_ratelimited ( dev, "c\n"); DRM_ERROR_RATELIMITED("d"); dev_warn(dev, "no");
        if (IS_ERR(x)) pr_err("e)\n"); my_dev_err(dev, "no"); DC_LOG_ERROR("%s: f", __func__);
        dev_err(dev, fmt, x); WARN(1, "no");
    "#;
    assert_eq!(errors(source), ["a %s (%d) and b\n", "c\n", "d", "e)\n", "%s: f"]);
}
