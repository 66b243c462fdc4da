//! The output of a machine's steps.
//!
//! A step is written as three marked lines around its streams and its exit status:
//!
//! ```text
//! @@ begin NAME
//! …stdout…
//! @@ stderr
//! …stderr…
//! @@ end NAME STATUS
//! ```
//!
//! The last line of all is `@@ done`, so that a machine that stopped half-way is noticed.

use std::collections::BTreeMap;

/// The output of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Every step's output by the step's name.
#[derive(Clone, Debug, Default)]
pub struct Answers(BTreeMap<String, Answer>);

impl Answers {
    /// Reads what a machine wrote to its serial port.
    ///
    /// # Errors
    /// A sentence that says where the text ends too early, or which mark is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut answers = BTreeMap::new();
        let mut open: Option<(&str, Answer, bool)> = None;
        for line in text.lines().map(|line| line.trim_end_matches('\r')) {
            let mark = line.strip_prefix("@@ ").map(|mark| mark.split(' ').collect::<Vec<_>>());
            match (mark.as_deref(), &mut open) {
                (Some(["begin", name]), None) => open = Some((name, Answer::default(), false)),
                (Some(["stderr"]), Some((_, _, is_stderr))) => *is_stderr = true,
                (Some(["end", name, status]), Some((opened, _, _))) if name == opened => {
                    let Some((name, mut answer, _)) = open.take() else { continue };
                    answer.status =
                        status.parse().map_err(|_| format!("{name} has no exit status: {line}"))?;
                    if answers.insert(name.to_owned(), answer).is_some() {
                        return Err(format!("the step {name} was run twice"));
                    }
                }
                (Some(["done"]), None) => return Ok(Self(answers)),
                (Some(_), _) => return Err(format!("an unexpected mark: {line}")),
                (None, Some((_, answer, is_stderr))) => {
                    let stream = if *is_stderr { &mut answer.stderr } else { &mut answer.stdout };
                    stream.push_str(line);
                    stream.push('\n');
                }
                (None, None) => {}
            }
        }
        Err(match open {
            Some((name, answer, _)) => format!("the machine stopped in the step {name}: {answer:?}"),
            None => format!("the machine stopped after {} steps", answers.len()),
        })
    }

    /// The answer of a step.
    ///
    /// # Panics
    /// Where the machine ran no such step.
    #[track_caller]
    #[must_use]
    pub fn of(&self, step: &str) -> &Answer {
        self.0.get(step).unwrap_or_else(|| panic!("the machine ran no step {step}"))
    }

    /// The stdout of a step that ended with 0, without the white space around it.
    ///
    /// # Panics
    /// Where the step failed.
    #[track_caller]
    #[must_use]
    pub fn said(&self, step: &str) -> &str {
        let answer = self.of(step);
        assert_eq!(answer.status, 0, "{step}: {answer:#?}");
        answer.stdout.trim()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_its_two_streams_and_its_status() {
        let text = "noise\r\n@@ begin a\r\none\r\n\r\ntwo\r\n@@ stderr\r\nwhy\r\n@@ end a 3\r\n\
                    @@ begin b\n@@ stderr\n@@ end b 0\n@@ done\n";
        let answers = Answers::parse(text).unwrap();
        let expected = Answer { status: 3, stdout: "one\n\ntwo\n".into(), stderr: "why\n".into() };
        assert_eq!(answers.of("a"), &expected);
        assert_eq!(answers.said("b"), "");
    }

    #[test]
    fn a_machine_that_stopped_or_lost_a_line_is_noticed() {
        for (text, said) in [
            ("", "stopped after 0 steps"),
            ("@@ begin a\n@@ stderr\n@@ end a 0\n", "stopped after 1 steps"),
            ("@@ begin a\nhalf", "stopped in the step a"),
            ("@@ begin a\n@@ begin b\n", "unexpected mark: @@ begin b"),
            ("@@ begin a\n@@ end b 0\n@@ done\n", "unexpected mark: @@ end b 0"),
            ("@@ begin a\n@@ end a x\n@@ done\n", "no exit status"),
            ("@@ begin a\n@@ end a 0\n@@ begin a\n@@ end a 0\n@@ done\n", "twice"),
        ] {
            let error = Answers::parse(text).unwrap_err();
            assert!(error.contains(said), "{text:?}: {error}");
        }
    }
}
