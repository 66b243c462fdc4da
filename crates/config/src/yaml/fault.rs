//! What is wrong in a configuration, as a person reads it: the key, what stands there, and what may stand there.

use std::fmt::{self, Display, Formatter};

use serde::de::{Error, Expected, Unexpected};

use crate::password::hidden;

/// What is wrong in a configuration, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// From 1; 0 while it is unknown.
    pub(crate) line: usize,
    /// The key and the sections around it, the innermost first.
    keys: Vec<String>,
    /// Whether an entry of the key's list is meant.
    in_list: bool,
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Problem {
    /// A key that nothing reads, beside those that are read there.
    Unknown {
        key: String,
        known: &'static [&'static str],
    },
    /// A key that stands on the line `first`, too.
    Twice {
        key: String,
        first: usize,
    },
    Value {
        is: String,
        takes: String,
    },
    /// A sentence.
    Other(String),
}

/// What a key takes that counts something.
pub(super) const NUMBER: &str = "a whole number";

/// How near a word must be to a key for a suggestion. With clap's 0.7, `mode` would mean `module-options`.
const NEAR: f64 = 0.8;

/// Keys in a wrong section, and names of the charm's options and of other programs, each with the key that is meant.
const MEANT: [(&str, &str); 16] = [
    ("concourse-tags", "concourse.tags"),
    ("concourse.tag", "tag, outside of concourse"),
    ("tags", "tag, or concourse.tags"),
    ("exporter.port", "exporter.listen"),
    ("exporter-port", "exporter.listen"),
    ("exporter-listen", "exporter.listen"),
    ("gpus", GPUS),
    ("gpu", GPUS),
    ("wrapper.gpus", GPUS),
    ("sharing", "wrapper.sharing"),
    ("exclusive", "wrapper.sharing"),
    ("wrapper.exclusive", "wrapper.sharing"),
    ("wrapper.wait", "wrapper.wait-limit-s"),
    ("wait-limit-s", "wrapper.wait-limit-s"),
    ("idle-grace-s", "wrapper.idle-grace-s"),
    ("quarantine", "wrapper.quarantine"),
];

/// A number would be taken for a GPU's index.
const GPUS: &str =
    "gpu-device-ids, which lists GPUs of the machine? A task asks for a number of them by AMD_GPU_COUNT";

impl Fault {
    pub(super) fn at(line: usize, problem: impl Into<String>) -> Self {
        Self { line, ..Self::custom(problem.into()) }
    }

    /// A key that stands on the line `first`, too.
    pub(super) fn twice(line: usize, key: impl Into<String>, first: usize) -> Self {
        Self { line, ..Problem::Twice { key: hidden(&key.into()), first }.into() }
    }

    pub(super) fn value(is: impl Into<String>, takes: impl Into<String>) -> Self {
        Problem::Value { is: is.into(), takes: takes.into() }.into()
    }

    /// Names the section around, and a line where none is known yet.
    #[must_use]
    pub fn of_key(mut self, key: &str, line: usize) -> Self {
        self.keys.push(hidden(key));
        self.on_line(line)
    }

    pub(super) fn of_list(mut self, line: usize) -> Self {
        self.in_list |= self.keys.is_empty();
        self.on_line(line)
    }

    pub(super) fn on_line(self, line: usize) -> Self {
        Self { line: if self.line == 0 { line } else { self.line }, ..self }
    }

    /// The key as it is written behind its sections: `daemon.settle-s`.
    pub(crate) fn key(&self) -> String {
        let keys: Vec<&str> = self.keys.iter().rev().map(String::as_str).collect();
        keys.join(".")
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self { line: 0, keys: Vec::new(), in_list: false, problem }
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let key = self.key();
        let section = if key.is_empty() { String::new() } else { format!("{key}.") };
        match &self.problem {
            Problem::Twice { key: word, first } => {
                write!(f, "{section}{word} is on line {first} already: keep one of the two")
            }
            Problem::Unknown { key: word, known } => {
                let written = format!("{section}{word}");
                write!(f, "{written} is no key")?;
                if let Some((_, meant)) = MEANT.iter().find(|(other, _)| *other == folded(&written)) {
                    let end = if meant.contains('?') { "" } else { "?" };
                    return write!(f, ": did you mean {meant}{end}");
                }
                match nearest(word, known) {
                    Some(near) => write!(f, ": did you mean {section}{near}?"),
                    None if key.is_empty() => write!(f, ": the keys are {}", known.join(", ")),
                    None => write!(f, ": the keys of {key} are {}", known.join(", ")),
                }
            }
            Problem::Value { is, takes } => {
                let subject = match (key.is_empty(), self.in_list) {
                    (true, _) => "the file".to_owned(),
                    (false, true) => format!("an entry of {key}"),
                    (false, false) => key,
                };
                let unit = match self.keys.first() {
                    Some(key) if takes == NUMBER && key.ends_with("-s") => " of seconds",
                    _ => "",
                };
                write!(f, "{subject} is {is}; it takes {takes}{unit}")
            }
            Problem::Other(text) if key.is_empty() => f.write_str(text),
            Problem::Other(text) => write!(f, "{key}: {text}"),
        }
    }
}

impl std::error::Error for Fault {}

impl Error for Fault {
    fn custom<T: Display>(text: T) -> Self {
        Problem::Other(text.to_string()).into()
    }

    fn invalid_type(is: Unexpected<'_>, takes: &dyn Expected) -> Self {
        let is = match is {
            Unexpected::Bool(value) => value.to_string(),
            Unexpected::Unsigned(number) => number.to_string(),
            Unexpected::Signed(number) => number.to_string(),
            Unexpected::Float(number) => number.to_string(),
            Unexpected::Str(text) => quoted(text),
            Unexpected::Unit | Unexpected::Option => "empty".to_owned(),
            Unexpected::Seq => "a list".to_owned(),
            Unexpected::Map => "a section".to_owned(),
            other => other.to_string(),
        };
        Self::value(is, takes.to_string())
    }

    fn invalid_value(is: Unexpected<'_>, takes: &dyn Expected) -> Self {
        Self::invalid_type(is, takes)
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        Self::value(quoted(word), one_of(known))
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Problem::Unknown { key: hidden(key), known }.into()
    }
}

/// `a, b or c`
pub(super) fn one_of(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// A text in quotes, without a password, and cut where it is long.
pub(super) fn quoted(text: &str) -> String {
    const MOST: usize = 40;
    let text = &*hidden(text);
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or(text)),
        None => format!("{text:?}"),
    }
}

/// A key in the spelling that keys have.
fn folded(word: &str) -> String {
    word.to_lowercase().replace('_', "-")
}

fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let word = folded(word);
    let near =
        known.iter().map(|known| (strsim::jaro(&word, known), *known)).filter(|(near, _)| *near > NEAR);
    near.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, known)| known)
}
