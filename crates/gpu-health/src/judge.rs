//! From what is known of a machine's GPUs to how well each is.

use allocation::health::Health;
use amdgpu::Address;
use kernel_log::knowledge::Class;
use telemetry::sample::Sample;

use crate::rules::Rules;

/// A message that the kernel has logged.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Seconds since 1970.
    pub at: u64,
    pub class: Class,
    /// `None`: the line does not say which GPU.
    pub gpu: Option<Address>,
    /// The message's id in the knowledge.
    pub message: String,
    pub line: String,
}

/// A card, and what was read of it.
#[derive(Debug, Clone)]
pub struct Card {
    pub pci: Address,
    /// Empty while it is suspended, or where nothing can be read.
    pub samples: Vec<Sample>,
    /// Why there are no samples.
    pub unread: Option<String>,
}

/// What is known at one time.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Seconds since 1970.
    pub now: u64,
    pub cards: &'a [Card],
    /// Since boot, as far as the kernel's buffer goes back; or why it cannot be read.
    pub events: Result<&'a [Event], &'a str>,
    /// What the last judgement was.
    pub last: Option<&'a Health>,
}

/// What must be kept between two judgements: earlier samples of what the rules want the increase of.
#[derive(Debug, Default)]
pub struct Judge {}

impl Judge {
    pub fn judge(&mut self, _rules: &Rules, known: Known<'_>) -> Health {
        Health { schema_version: 1, written_at: known.now, ..Health::default() }
    }
}
