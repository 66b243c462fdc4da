//! What an action answers: flat keys for people, and the whole as JSON.

use printable::shortened;
use serde::Serialize;
use serde_json::Value;

/// The longest value: Linux takes 128 KiB in one argument, and `action-set` takes a value in one.
const LONGEST: usize = 96 << 10;
/// The longest of the values for people.
const LONGEST_TEXT: usize = 1 << 10;
/// How many keys of one kind there are at most; what is more is in the JSON.
const MOST: usize = 64;

/// What `action-set` and `action-fail` are given.
#[derive(Debug)]
pub struct Answer {
    /// The command that prints the answer's JSON on the machine, for an answer that is too long for Juju.
    command: &'static str,
    /// Arguments `key=value`.
    pub pairs: Vec<String>,
    /// Why the action has not done what it should.
    pub failure: Option<String>,
}

impl Answer {
    pub fn new(command: &'static str) -> Self {
        Self { command, pairs: Vec::new(), failure: None }
    }

    pub fn failing(self, failure: Option<String>) -> Self {
        Self { failure, ..self }
    }

    /// A key of lower-case letters, digits and hyphens (Juju's rule), and its value.
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        let value = shortened(value.to_string(), LONGEST_TEXT);
        self.pairs.push(format!("{key}={value}"));
        self
    }

    /// `KEY-0`, `KEY-1` and so on.
    pub fn with_each(self, key: &str, values: impl IntoIterator<Item = String>) -> Self {
        let few = values.into_iter().take(MOST).enumerate();
        few.fold(self, |answer, (nth, value)| answer.with(&format!("{key}-{nth}"), value))
    }

    /// The whole, without what only root may read: the controller keeps an action's answer.
    pub fn with_json(mut self, whole: &impl Serialize) -> Self {
        let mut whole = serde_json::to_value(whole).unwrap_or_default();
        without_diffs(&mut whole);
        let json = whole.to_string();
        self.pairs.push(match json.len() {
            ..=LONGEST => format!("json={json}"),
            bytes => format!(
                "json-left-out=it has {bytes} bytes: juju ssh UNIT sudo {} --output json prints it",
                self.command
            ),
        });
        self
    }
}

/// Takes the lines of files out, which a plan has as diffs.
fn without_diffs(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("diff");
            object.values_mut().for_each(without_diffs);
        }
        Value::Array(array) => array.iter_mut().for_each(without_diffs),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_has_flat_keys_and_the_whole_without_diffs_of_files() {
        let whole = json!({ "changes": [{ "path": "/etc/x", "diff": "+secret" }], "n": 1 });
        let answer = Answer::new("rocworker plan").with("changes", 1).with_json(&whole);
        assert_eq!(answer.pairs, ["changes=1", r#"json={"changes":[{"path":"/etc/x"}],"n":1}"#]);
    }

    #[test]
    fn what_is_too_long_is_left_out_and_says_where_it_is() {
        let answer = Answer::new("rocworker detect")
            .with("text", "ä".repeat(2000))
            .with_each("gpu", (0..100).map(|nth| nth.to_string()))
            .with_json(&"x".repeat(200_000));
        let pairs = answer.pairs;
        assert_eq!(pairs[0].chars().count(), "text=".len() + LONGEST_TEXT + 1);
        assert_eq!(pairs.len(), 1 + MOST + 1);
        assert_eq!(
            pairs.last().unwrap(),
            "json-left-out=it has 200002 bytes: juju ssh UNIT sudo rocworker detect --output json prints it"
        );
    }
}
