//! Creates that wait for GPUs, in the order in which they came: a ticket each in `/run/rocworker/waiting`, named by its
//! number. A ticket counts while the process that drew it lives.

use allocation::document::Document as _;
use allocation::record::Creator;
use allocation::ticket::Ticket;

use crate::liveness::Judge;
use crate::lock::Lock;
use crate::paths::Paths;
use crate::run_folder::{Kind, RunFolder};

/// A ticket that names 1,024 GPUs has half of the limit.
const KIND: Kind = Kind { folder: "waiting", what: "the ticket", limit: 64 * 1024 };

/// The folder of tickets.
#[derive(Debug)]
pub struct Queue {
    folder: RunFolder,
}

/// A ticket with which a create waits.
#[derive(Debug)]
pub struct Waiting {
    pub number: u64,
    pub ticket: Ticket,
}

impl Queue {
    pub fn of(paths: &Paths, lock: Option<&Lock>) -> Self {
        Self { folder: RunFolder::of(paths, KIND, lock) }
    }

    /// The creates that wait, in the order of their tickets.
    ///
    /// # Errors
    /// The folder cannot be read or is not root's alone.
    pub fn waiting(&self, judge: &Judge<'_>) -> Result<Vec<Waiting>, String> {
        let mut waiting = self.all()?;
        waiting.retain(|waiting| judge.creator_lives(&waiting.ticket.creator));
        Ok(waiting)
    }

    fn all(&self) -> Result<Vec<Waiting>, String> {
        let mut all = Vec::new();
        for (name, text) in self.folder.entries()? {
            let ticket = text.ok().and_then(|text| Ticket::parse(&text).ok());
            // An unreadable ticket makes no create wait: its owner draws another one.
            if let (Ok(number), Some(ticket)) = (name.parse(), ticket) {
                let at = all.partition_point(|waiting: &Waiting| waiting.number < number);
                all.insert(at, Waiting { number, ticket });
            }
        }
        Ok(all)
    }

    /// Removes the tickets of dead processes, and returns the others in their order.
    ///
    /// # Errors
    /// A ticket cannot be removed, or the folder cannot be read.
    pub fn reap(&self, lock: &Lock, judge: &Judge<'_>) -> Result<Vec<Waiting>, String> {
        let (waiting, dead): (Vec<_>, Vec<_>) =
            self.all()?.into_iter().partition(|waiting| judge.creator_lives(&waiting.ticket.creator));
        for one in dead {
            self.remove(lock, one.number)?;
        }
        Ok(waiting)
    }

    /// Whether this process's ticket still exists. Another process may have drawn the number of a ticket that
    /// was removed. True where the file cannot be read.
    pub fn has(&self, number: u64, creator: &Creator) -> bool {
        match self.folder.read(&name(number)) {
            Ok(Some(text)) => Ticket::parse(&text).is_ok_and(|ticket| ticket.creator == *creator),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Draws the next number.
    ///
    /// # Errors
    /// The ticket cannot be written.
    pub fn draw(&self, lock: &Lock, ticket: &Ticket) -> Result<u64, String> {
        self.folder.ensure(lock)?;
        let names = self.folder.names()?.into_iter().filter_map(|name| name.parse::<u64>().ok());
        let number = names.max().map_or(1, |last| last.saturating_add(1));
        self.folder.write(lock, &name(number), &ticket.to_json()?)?;
        Ok(number)
    }

    /// # Errors
    /// The kernel's error.
    pub fn remove(&self, _lock: &Lock, number: u64) -> Result<(), String> {
        self.folder.remove(&name(number))
    }
}

fn name(number: u64) -> String {
    format!("{number:020}")
}
