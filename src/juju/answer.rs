//! What an action answers: flat keys for people, and the whole as JSON.

use serde::Serialize;
use serde_json::Value;

/// The longest value: Linux takes 128 KiB in one argument, and `action-set` takes a value in one.
const LONGEST: usize = 96 << 10;
/// The longest of the values for people.
const LONGEST_TEXT: usize = 1 << 10;
/// How many keys of one kind there are at most; what is more is in the JSON.
const MOST: usize = 64;

/// What `action-set` is given.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    flat: Vec<(String, String)>,
    json: Option<String>,
    /// The command that prints the same, for what is too long.
    command: String,
}

impl Answer {
    /// `command`: what prints the same JSON on the machine.
    pub(super) fn new(command: &str) -> Self {
        Self { command: command.to_owned(), ..Self::default() }
    }

    /// A key of lower-case letters, digits and hyphens (Juju's rule), and its value.
    pub(super) fn with(mut self, key: &str, value: impl ToString) -> Self {
        let value = value.to_string();
        let value = match value.char_indices().nth(LONGEST_TEXT) {
            Some((end, _)) => format!("{}…", value.get(..end).unwrap_or_default()),
            None => value,
        };
        self.flat.push((key.to_owned(), value));
        self
    }

    /// `KEY-0`, `KEY-1` and so on.
    pub(super) fn with_each(self, key: &str, values: impl IntoIterator<Item = String>) -> Self {
        let few = values.into_iter().take(MOST).enumerate();
        few.fold(self, |answer, (nth, value)| answer.with(&format!("{key}-{nth}"), value))
    }

    /// The whole, without what only root may read: an action's answer is kept by the controller.
    pub(super) fn with_json(mut self, whole: &impl Serialize) -> Self {
        let mut whole = serde_json::to_value(whole).unwrap_or_default();
        without_lines(&mut whole);
        self.json = Some(whole.to_string());
        self
    }

    /// As arguments, `key=value`.
    pub(super) fn pairs(&self) -> Vec<String> {
        let mut pairs: Vec<String> = self.flat.iter().map(|(key, value)| format!("{key}={value}")).collect();
        match &self.json {
            Some(json) if json.len() <= LONGEST => pairs.push(format!("json={json}")),
            Some(json) => pairs.push(format!(
                "json-left-out=it has {} bytes: juju ssh UNIT sudo {} --output json prints it",
                json.len(),
                self.command
            )),
            None => {}
        }
        pairs
    }
}

/// Takes the lines of files out: a plan has them as diffs.
fn without_lines(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("diff");
            object.values_mut().for_each(without_lines);
        }
        Value::Array(array) => array.iter_mut().for_each(without_lines),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_has_flat_keys_and_the_whole_without_lines_of_files() {
        let whole = json!({ "changes": [{ "path": "/etc/x", "diff": "+secret" }], "n": 1 });
        let answer = Answer::new("rocworker plan").with("changes", 1).with_json(&whole);
        assert_eq!(answer.pairs(), ["changes=1", r#"json={"changes":[{"path":"/etc/x"}],"n":1}"#]);
    }

    #[test]
    fn what_is_too_long_is_left_out_and_says_where_it_is() {
        let answer = Answer::new("rocworker detect")
            .with("text", "ä".repeat(2000))
            .with_each("gpu", (0..100).map(|nth| nth.to_string()))
            .with_json(&"x".repeat(200_000));
        let pairs = answer.pairs();
        assert_eq!(pairs[0].chars().count(), "text=".len() + LONGEST_TEXT + 1);
        assert_eq!(pairs.len(), 1 + MOST + 1);
        assert_eq!(
            pairs.last().unwrap(),
            "json-left-out=it has 200002 bytes: juju ssh UNIT sudo rocworker detect --output json prints it"
        );
    }
}
