//! What is known of a machine's GPUs at one time: its cards' snapshot, and the kernel's log.

use inventory::PciAddress;
use inventory::health::Health;
use inventory::snapshot::Card;
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

/// What is known at one time.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Seconds since 1970.
    pub now: u64,
    /// Cards whose PCI address is known. Of a card that is suspended, or that cannot be read, there is no reading that a
    /// rule names.
    pub cards: &'a [Card],
    /// The kernel's log, or why the program cannot read it.
    pub log: Result<Log<'a>, &'a str>,
    /// The last judgement, however old.
    pub last: Option<&'a Health>,
}
