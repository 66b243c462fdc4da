//! Takes secrets and identities out of texts that somebody will read: configurations, log lines.
//!
//! Errs on the side of removing. A value is taken out whole to the end of its line when its key sounds secret,
//! so that neither quoting nor nesting decides whether half of it stays.

mod allow;
mod configuration;
mod keys;
mod line;
mod long;
mod message;
#[cfg(test)]
mod tests;
mod value;

use root::Root;

use crate::engines::Format;
pub(super) use keys::{CDI, ROCWORKER};

/// What stands in the place of what was removed.
pub(crate) const MARK: &str = "[removed]";

/// Removes secrets, and names of this machine.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    /// Word and what to put in its place.
    names: Vec<(String, &'static str)>,
    /// How paths begin that are said beneath another Root than `/`.
    root: Option<String>,
}

/// A text without its secrets, and in how many places something was taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redacted {
    pub(crate) text: String,
    pub(crate) places: usize,
}

impl Redactor {
    /// `hostname`: also removed, wherever it or its first label stands as a word. One shorter than four letters
    /// tells nobody anything, and would be found in words of ours.
    pub(crate) fn new(hostname: Option<&str>) -> Self {
        let whole = hostname.into_iter();
        let names = whole.chain(hostname.and_then(|name| name.split('.').next()));
        let telling = names.filter(|name| name.len() >= 4 && *name != "localhost" && *name != "amdgpu");
        Self { names: telling.map(|name| (name.to_ascii_lowercase(), "HOST")).collect(), root: None }
    }

    /// Also takes away where beneath this machine a captured one lies.
    pub(crate) fn beneath(mut self, root: &Root) -> Self {
        let shown = root.shown("/").display().to_string();
        self.root = (!root.is_host() && shown.len() > 2).then_some(shown);
        self
    }

    /// Any text of lines: TOML, YAML, an env file, a unit, a log. The lines keep their numbers.
    pub(crate) fn text(&self, text: &str) -> Redacted {
        let mut places = 0;
        let mut redacted = String::with_capacity(text.len());
        let mut going_on: Option<long::Value> = None;
        for line in text.split_inclusive('\n') {
            let (content, end) = match line.strip_suffix('\n') {
                Some(content) => (content, "\n"),
                None => (line, ""),
            };
            if let Some(value) = going_on.take() {
                match value.after(content) {
                    long::Next::Inside(value) => {
                        going_on = Some(value);
                        redacted.push_str(end);
                        continue;
                    }
                    long::Next::Last => {
                        redacted.push_str(end);
                        continue;
                    }
                    long::Next::Beyond => {}
                }
            }
            let found = line::redact(content, &self.names);
            places += found.places;
            redacted.push_str(&found.text);
            redacted.push_str(end);
            going_on = found.goes_on;
        }
        Redacted { text: redacted, places }
    }

    /// Lines that the wrapper has logged.
    pub(crate) fn messages(&self, text: &str) -> Redacted {
        let mut places = 0;
        let lines: String = text.lines().map(|line| message::redacted(line, &mut places) + "\n").collect();
        let Redacted { text, places: others } = self.text(&lines);
        Redacted { text, places: places + others }
    }

    /// What is wrong with a configuration: a key by its name, and no value that it quotes.
    pub(crate) fn error(&self, text: &str) -> String {
        let (said, expected) = text.find(", expected").map_or((text, ""), |at| text.split_at(at));
        let (first, last) = (said.find(['"', '`']), said.rfind(['"', '`']));
        let quoted =
            first.zip(last).and_then(|(first, last)| Some((first, last, said.get(first + 1..last)?)));
        let told = match quoted {
            Some((first, _, key))
                if said.get(..first).is_some_and(|it| it.ends_with("field ")) && allow::is_name(key) =>
            {
                said.to_owned()
            }
            Some((first, last, value)) => {
                let around = |range| said.get(range).unwrap_or_default();
                format!(
                    "{}{}{}",
                    around(0..first),
                    allow::removed("text", value),
                    around(last + 1..said.len())
                )
            }
            None => said.to_owned(),
        };
        self.text(&format!("{told}{expected}")).text
    }

    /// A configuration, with what may be told of it and nothing else.
    pub(crate) fn configuration(&self, format: Format, text: &str) -> Redacted {
        let Redacted { text, mut places } = configuration::redacted(format, text);
        Redacted { text: line::identities(&text, &self.names, &mut places), places }
    }
}

/// Whether a key's value is nobody's business.
fn is_secret(key: &str) -> bool {
    const PARTS: [&str; 12] = [
        "secret",
        "token",
        "passw",
        "passphrase",
        "pwd",
        "key",
        "credential",
        "auth",
        "private",
        "cookie",
        "serial",
        "bearer",
    ];
    const ENDS: [&str; 4] = ["user", "users", "username", "userinfo"];
    let key = key.to_ascii_lowercase();
    PARTS.iter().any(|part| key.contains(part)) || ENDS.iter().any(|end| key.ends_with(end))
}
