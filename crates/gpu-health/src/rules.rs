//! The rules that rules.toml holds; an operator's file has that form, too.

mod parse;
mod shown;
mod unfit;

use inventory::series::Series;
use kernel_log::knowledge::{Class, Error, Severity};
pub(crate) use shown::Span;

/// crates/gpu-health/rules.toml.
pub const BUILT_IN: &str = include_str!("../rules.toml");

/// A file that replaces the built-in rules.
pub const PATH: &str = "/etc/rocworker/health-rules.toml";

/// The most messages for which a rule may wait: whoever reads the log keeps so many of each message, GPU and
/// ring.
pub const MOST_EVENTS: usize = 32;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    /// A score below this is degraded.
    pub degraded_below: u8,
    /// A score below this is unhealthy.
    pub unhealthy_below: u8,
    /// How many seconds a GPU must not have been unhealthy before it leaves quarantine.
    pub hold_s: u64,
    /// A GPU that no process uses, and that has more VRAM in use than this, still holds memory of earlier
    /// processes. `None`: no check.
    pub leftover_bytes: Option<u64>,
    pub rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub id: String,
    /// The points that the rule takes off the score, 1 to 100: once, however often it holds.
    pub points: u8,
    /// A sentence on what the rule's evidence means.
    pub reason: String,
    /// The group of rules that may all hold for one incident: of those that hold, only the one with most
    /// points counts.
    pub group: Option<String>,
    /// Whether the rule means that the GPU hangs.
    pub hang: bool,
    pub when: When,
}

#[derive(Debug, Clone, PartialEq)]
pub enum When {
    Log(OfLog),
    Metric(OfMetric),
}

/// The kernel has logged messages of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfLog {
    pub class: Class,
    /// Narrows the class to the message with this id.
    pub message: Option<String>,
    /// The least severity that counts.
    pub severity: Severity,
    /// The least number of messages.
    pub at_least: usize,
    /// Counts messages of the last so many seconds; `None`: since boot.
    pub within_s: Option<u64>,
    /// Counts only messages that no later message about this GPU ends.
    pub open: bool,
}

/// A reading has a value.
#[derive(Debug, Clone, PartialEq)]
pub struct OfMetric {
    pub of: Selector,
    pub is: Is,
}

/// Values of a series that have these labels, whatever others they have.
#[derive(Debug, Clone)]
pub struct Selector {
    pub series: &'static Series,
    pub labels: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Is {
    Above(f64),
    AtLeast(f64),
    Below(f64),
    /// Above the value of another series. Labels that both series have, and that no selector names, must be
    /// equal. A limit of 0 or less counts as no limit.
    AboveOther(Selector),
    BelowOther(Selector),
    /// The value has grown by at least `by` within `within_s` seconds.
    Grown {
        by: f64,
        within_s: u64,
    },
}

/// What a rule says of a card: `None` where it cannot be judged, or whether it holds, with the evidence.
pub(crate) type Verdict = Option<Option<String>>;

impl PartialEq for Selector {
    fn eq(&self, other: &Self) -> bool {
        (self.series.name, &self.labels) == (other.series.name, &other.labels)
    }
}

impl Rules {
    /// The rules of rules.toml. A test parses that text, too, so it has no errors.
    #[must_use]
    pub fn built_in() -> Self {
        Self::parse("rules.toml", BUILT_IN).unwrap_or_default()
    }

    /// `name`: what an error calls the text.
    ///
    /// # Errors
    /// The text is no TOML, or no such rules; with the line and what to do.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        parse::rules(text).map_err(|fault| Error {
            name: name.to_owned(),
            line: 1 + text.bytes().take(fault.at).filter(|byte| *byte == b'\n').count(),
            problem: fault.problem,
        })
    }
}
