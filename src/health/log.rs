//! The kernel's messages about GPUs since boot, in bounded memory.

mod kept;

use std::time::Duration;

use gpu_health::known::Event;
use inventory::snapshot::Card;
use kernel_log::kmsg::{self, Kmsg, Record};
use kernel_log::knowledge::Knowledge;
use kernel_log::origin::Origin;
use nix::time::{ClockId, clock_gettime};
use root::Root;

use kept::Kept;

/// How often one look reads the log, 4,096 records at a time.
const MOST_READS: usize = 64;

/// How many characters of a line are kept.
const LONGEST: usize = 400;

#[derive(Debug, Default)]
pub(super) struct KernelLog {
    reader: Option<Reader>,
}

#[derive(Debug)]
struct Reader {
    kmsg: Kmsg,
    knowledge: &'static Knowledge,
    logged: Kept,
    /// Whether the log has every record since boot; `None` before the first record.
    is_whole: Option<bool>,
    /// When the last record was logged.
    last: Duration,
}

impl KernelLog {
    /// All messages since boot about these cards and the bridges above them, and whether none is missing. `now`:
    /// seconds since 1970.
    pub(super) fn read(
        &mut self,
        root: &Root,
        cards: &[Card],
        now: u64,
    ) -> Result<(Vec<Event>, bool), String> {
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => Reader::open(root)?,
        };
        reader.logged.devices(cards.iter().flat_map(|card| card.pci.into_iter().chain(card.bridges.clone())));
        // A reader that fails is opened again, and reads again from the beginning.
        reader.more()?;
        let Some(is_whole) = reader.is_whole else {
            return Err(format!("{} holds no record of the kernel's", root.shown(kmsg::PATH).display()));
        };
        let clock = clock(root, reader.last)?;
        let dated = |since_boot: Duration, event: &Event| {
            let ago = clock.saturating_sub(since_boot).as_secs();
            Event { at: now.saturating_sub(ago), ..event.clone() }
        };
        let events = reader.logged.in_order().map(|(since_boot, event)| dated(since_boot, event)).collect();
        self.reader = Some(reader);
        Ok((events, is_whole))
    }
}

/// The clock by which the kernel stamps its records. A captured machine's stands at its last record.
fn clock(root: &Root, last: Duration) -> Result<Duration, String> {
    if !root.is_host() {
        return Ok(last);
    }
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(|errno| format!("no clock: {errno}"))?;
    Ok(Duration::from(now))
}

impl Reader {
    fn open(root: &Root) -> Result<Self, String> {
        let kmsg = Kmsg::open(root)?;
        let knowledge = Knowledge::built_in().map_err(ToString::to_string)?;
        Ok(Self { kmsg, knowledge, logged: Kept::default(), is_whole: None, last: Duration::ZERO })
    }

    /// Reads what has come, at most as much as a kernel's buffer holds.
    fn more(&mut self) -> Result<(), String> {
        for _ in 0..MOST_READS {
            if !self.some()? {
                break;
            }
        }
        Ok(())
    }

    /// Reads some records, and returns whether there are more.
    fn some(&mut self) -> Result<bool, String> {
        let read = self.kmsg.read()?;
        if let Some(first) = read.records.first() {
            // The kernel counts its records from 0.
            self.is_whole.get_or_insert(first.sequence == 0);
        }
        if read.lost {
            self.is_whole = Some(false);
        }
        for record in &read.records {
            self.last = self.last.max(record.since_boot);
            self.add(record);
        }
        Ok(read.more)
    }

    fn add(&mut self, record: &Record) {
        let origin = Origin::of_record(&record.text, record.device);
        let Some(found) = self.knowledge.find_from(&origin) else { return };
        let line: String = String::from_utf8_lossy(&record.text).chars().take(LONGEST).collect();
        let event = Event {
            at: 0,
            class: found.message.class,
            severity: found.message.severity,
            gpu: found.device,
            message: found.message.id.clone(),
            ring: found.values.into_iter().find(|(name, _)| *name == "ring").map(|(_, ring)| ring),
            ends: found.message.ends.clone(),
            line,
        };
        self.logged.add(record.since_boot, event);
    }
}
