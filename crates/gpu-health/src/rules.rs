//! The rules, as rules.toml says them; an operator's file has the same form.

use kernel_log::knowledge::{Class, Error};
use serde::Deserialize;

/// crates/gpu-health/rules.toml.
pub const BUILT_IN: &str = include_str!("../rules.toml");

/// A file that replaces the built-in rules.
pub const PATH: &str = "/etc/rocworker/health-rules.toml";

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// A score below this is degraded.
    pub degraded_below: u8,
    /// A score below this is unhealthy.
    pub unhealthy_below: u8,
    /// How long a GPU must not have been unhealthy before it leaves quarantine, in seconds.
    pub hold_s: u64,
    #[serde(rename = "rule", default)]
    pub rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub id: String,
    /// What it takes off the score, 1 to 100: once, however often it holds.
    pub points: u8,
    /// What it means, a sentence.
    pub reason: String,
    #[serde(flatten)]
    pub when: When,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// The kernel has logged messages of this class.
    Log { class: Class },
}

impl Rules {
    /// # Errors
    /// None that can be met: a test reads the same text.
    pub fn built_in() -> Result<Self, Error> {
        Self::parse("health-rules.toml", BUILT_IN)
    }

    /// `name`: what an error calls the text.
    ///
    /// # Errors
    /// The text is no TOML, or no such rules; with the line.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| Error {
            name: name.to_owned(),
            line: 1,
            problem: error.message().to_owned(),
        })
    }
}
