//! From what is known of a machine's GPUs to how well each is.

use allocation::health::Health;
use amdgpu::Address;
use kernel_log::knowledge::{Class, Severity};
use telemetry::sample::Sample;

use crate::rules::Rules;

/// A message that the kernel has logged.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Seconds since 1970.
    pub at: u64,
    pub class: Class,
    pub severity: Severity,
    /// A GPU or a bridge above one. `None`: the line does not say which.
    pub gpu: Option<Address>,
    /// The message's id in the knowledge.
    pub message: String,
    pub line: String,
}

/// The kernel's log of this boot.
#[derive(Debug, Clone, Copy)]
pub struct Log<'a> {
    /// In the order in which the kernel logged them.
    pub events: &'a [Event],
    /// Whether it goes back to boot without a gap.
    pub is_whole: bool,
}

/// A card, and what was read of it.
#[derive(Debug, Clone)]
pub struct Card {
    pub pci: Address,
    /// Those above it on the PCI bus: what the kernel says of their links is about this card too.
    pub bridges: Vec<Address>,
    /// Whether amdgpu drives it. A log that says nothing of another card says nothing about how well that is.
    pub is_driven: bool,
    /// Empty while it is suspended, or where nothing can be read.
    pub samples: Vec<Sample>,
    /// What could not be read, a sentence each.
    pub unread: Vec<String>,
}

/// What is known at one time.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Seconds since 1970.
    pub now: u64,
    pub cards: &'a [Card],
    /// Or why it cannot be read.
    pub log: Result<Log<'a>, &'a str>,
    /// The last judgement, however old.
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
