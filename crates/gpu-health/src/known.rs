//! What is known of a machine's GPUs at one time: readings of each card, and the kernel's log.

use inventory::PciAddress;
use inventory::health::Health;
use inventory::readings::CardReadings;
use kernel_log::knowledge::{Class, Ended, Severity};

/// A message that the kernel has logged.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Seconds since 1970.
    pub at: u64,
    pub class: Class,
    pub severity: Severity,
    /// A GPU or a bridge above one. `None`: the line does not say which.
    pub gpu: Option<PciAddress>,
    /// The message's id in the knowledge.
    pub message: String,
    /// `gfx_0.0.0`, where the line names one.
    pub ring: Option<String>,
    /// Which earlier messages about the same GPU are over with this one.
    pub ends: Vec<Ended>,
    pub line: String,
}

/// The kernel's log of this boot.
#[derive(Debug, Clone, Copy)]
pub struct Log<'a> {
    /// In the order in which the kernel logged them.
    pub events: &'a [Event],
    /// Whether the log goes back to boot without a gap.
    pub is_whole: bool,
}

/// A card, and what was read of it.
#[derive(Debug, Clone)]
pub struct Card {
    pub pci: PciAddress,
    /// Bridges above the card on the PCI bus: what the kernel says of their links is about this card too.
    pub bridges: Vec<PciAddress>,
    /// Whether amdgpu drives it. A log that says nothing of another card says nothing about how well that is.
    pub is_driven: bool,
    /// What was read of the card: nothing that a rule names while the card is suspended, or where nothing can be read.
    pub readings: CardReadings,
    /// What could not be read, a sentence each.
    pub unread: Vec<String>,
}

/// What is known at one time.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Seconds since 1970.
    pub now: u64,
    pub cards: &'a [Card],
    /// The kernel's log, or why the program cannot read it.
    pub log: Result<Log<'a>, &'a str>,
    /// The last judgement, however old.
    pub last: Option<&'a Health>,
}
