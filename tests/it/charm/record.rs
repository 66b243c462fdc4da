//! What hooks told Juju, as a golden file has it.

use serde_json::Value;

/// One call of a hook tool: its name and arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call(Vec<String>);

/// The calls of a file with a JSON array a line.
pub(crate) fn calls(text: &str) -> Vec<Call> {
    text.lines().map(|line| Call(serde_json::from_str(line).unwrap())).collect()
}

impl Call {
    pub(crate) fn name(&self) -> &str {
        self.0.first().unwrap()
    }

    pub(crate) fn words(&self) -> &[String] {
        &self.0
    }

    fn is_step(&self) -> bool {
        self.name() == "status-set" && self.0.get(1).is_some_and(|state| state == "maintenance")
    }
}

/// A line a call. How many steps are told is a matter of time, and so the first alone stands for those that follow it.
pub(crate) fn golden(calls: &[Call]) -> String {
    let mut text = String::new();
    let mut was_step = false;
    for call in calls {
        let is_step = call.is_step();
        if !(is_step && was_step) {
            let words: Vec<String> =
                call.0.iter().filter(|it| !is_of_this_machine(it)).map(|it| shown(it)).collect();
            text.push_str(&words.join(" "));
            text.push('\n');
        }
        was_step = is_step;
    }
    text
}

/// What doctor finds is as much of the machine that runs the test: its /proc, its tools.
fn is_of_this_machine(word: &str) -> bool {
    ["failed", "warning"].iter().any(|key| word.starts_with(key))
}

fn shown(word: &str) -> String {
    if let Some(json) = word.strip_prefix("json=") {
        let whole: Value = serde_json::from_str(json).unwrap();
        assert_eq!(whole["schema_version"], 1, "{json}");
        let keys: Vec<&String> = whole.as_object().unwrap().keys().collect();
        return format!("json={keys:?}");
    }
    // An archive's size and name are of its moment.
    if let Some((key @ ("bytes" | "entries"), _)) = word.split_once('=') {
        return format!("{key}=N");
    }
    let word = match (word.find("rocworker-report-"), word.find(".tar.gz")) {
        (Some(begin), Some(end)) => format!("{}REPORT{}", &word[..begin], &word[end..]),
        _ => word.to_owned(),
    };
    if word.contains(' ') { format!("{word:?}") } else { word }
}
