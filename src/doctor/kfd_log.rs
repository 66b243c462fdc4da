//! What the kernel's log says of GPUs that KFD leaves out.

use explain::journal;
use explain::matches;
use inventory::{Gpu, PciAddress};
use kernel_log::kept;
use kernel_log::kmsg::Kmsg;
use kernel_log::knowledge::{Class, Found, Knowledge, Message};
use kernel_log::origin::Origin;
use kernel_log::scan::{Hit, scan};
use reconcile::command::Programs;
use root::Root;

/// How often the log is read, 4,096 records at a time: more than a kernel's buffer holds.
const MOST_READS: usize = 64;

/// Lines that are kept: more than a machine has GPUs.
const MOST: usize = 1024;

/// The message that follows the one about the step that failed.
const NOT_ADDED: &str = "kfd-not-added";

/// KFD's lines about what it left out, in the log's order.
#[derive(Debug, Default)]
pub(super) struct KfdLog {
    lines: Vec<Line>,
    /// Why the log since boot was not read, or not whole.
    pub(super) unread: Option<String>,
}

/// A line, and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// The kernel's line in quotation marks, and the end of a sentence.
    pub(super) text: String,
    pub(super) means: String,
    pub(super) remedy: String,
    /// The message's place among all: of several messages about one GPU the first names the cause.
    place: usize,
    about: About,
    /// The number of the line's record.
    record: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    /// All cards with these PCI ids that KFD does not have.
    Ids(u16, u16),
    Card(PciAddress),
    /// The line names no card.
    Unnamed,
}

impl KfdLog {
    /// `programs`: `None` beneath another Root than `/`.
    pub(super) fn read(root: &Root, programs: Option<&Programs>) -> Self {
        let mut log = Self::default();
        let knowledge = match Knowledge::built_in() {
            Ok(knowledge) => knowledge,
            Err(error) => return Self { unread: Some(error.to_string()), ..log },
        };
        log.unread = log.of_kernel(root, knowledge).err();
        // amdgpu is loaded at boot, and long logs lose their beginning first.
        if log.unread.is_some() && log.lines.is_empty() {
            let read = match programs {
                Some(programs) => log.of_journal(root, programs, knowledge),
                None => log.of_report(root, knowledge),
            };
            if read {
                log.unread = None;
            }
        }
        log
    }

    /// Reads the kernel's own buffer.
    fn of_kernel(&mut self, root: &Root, knowledge: &Knowledge) -> Result<(), String> {
        let mut kmsg = Kmsg::open(root)?;
        let mut is_whole = None;
        for _ in 0..MOST_READS {
            let read = kmsg.read()?;
            if let Some(first) = read.records.first() {
                // The kernel counts its records from 0.
                is_whole.get_or_insert(first.sequence == 0);
            }
            for record in &read.records {
                let origin = Origin::of_record(&record.text, record.device);
                if let Some(found) = knowledge.find_from(&origin).filter(|found| !found.message.silent) {
                    self.add(knowledge, record.sequence, &record.text, &found);
                }
            }
            if !read.more {
                break;
            }
        }
        match is_whole {
            Some(true) => Ok(()),
            _ => Err("the kernel has overwritten the lines of its start".to_owned()),
        }
    }

    fn of_journal(&mut self, root: &Root, programs: &Programs, knowledge: &Knowledge) -> bool {
        let mut each = |line: matches::Line<'_>, found: &Found<'_>| {
            self.add(knowledge, line.number, line.text, found);
            Ok(())
        };
        journal::read(root, programs, None, knowledge, &mut each).is_ok()
    }

    /// Reads the lines that a report has kept.
    fn of_report(&mut self, root: &Root, knowledge: &Knowledge) -> bool {
        let Ok(file) = root.open_to_read(kept::OF_REPORT) else { return false };
        let mut each = |hit: &Hit<'_, '_>| {
            self.add(knowledge, hit.line, hit.text, &hit.found);
            Ok(())
        };
        scan(knowledge, file, &mut each).is_ok()
    }

    fn add(&mut self, knowledge: &Knowledge, record: u64, text: &[u8], found: &Found<'_>) {
        let message = found.message;
        if message.class != Class::Kfd || self.lines.len() >= MOST {
            return;
        }
        let about = match (found.pci_ids(), found.device) {
            (Some((vendor, device)), _) => About::Ids(vendor, device),
            (None, Some(address)) => About::Card(address),
            (None, None) => About::Unnamed,
        };
        // The step that failed is named in the record before, without its GPU; any other may be about another GPU.
        if message.id == NOT_ADDED
            && about != About::Unnamed
            && let Some(before) = self.lines.last_mut()
            && before.about == About::Unnamed
            && before.record + 1 == record
        {
            before.about = about;
        }
        let place = knowledge.messages().iter().position(|it| it.id == message.id).unwrap_or(usize::MAX);
        let text = format!("\"{}\".", String::from_utf8_lossy(text).trim());
        self.lines.push(Line {
            text,
            means: message.means.clone(),
            remedy: remedy(message),
            place,
            about,
            record,
        });
    }

    /// The line that names a GPU which KFD does not have.
    pub(super) fn about(&self, gpu: &Gpu) -> Option<&Line> {
        let is_of_gpu = |line: &&Line| match line.about {
            About::Ids(vendor, device) => (gpu.vendor_id, gpu.device_id) == (Some(vendor), Some(device)),
            About::Card(address) => gpu.pci == Some(address),
            About::Unnamed => false,
        };
        self.lines.iter().filter(is_of_gpu).min_by_key(|line| line.place)
    }

    /// The line about KFD as a whole, or about a GPU that it does not name.
    pub(super) fn unnamed(&self) -> Option<&Line> {
        self.lines.iter().filter(|line| !line.names_a_gpu()).min_by_key(|line| line.place)
    }
}

impl Line {
    pub(super) fn names_a_gpu(&self) -> bool {
        self.about != About::Unnamed
    }
}

fn remedy(message: &Message) -> String {
    let steps = if message.now.is_empty() { &message.later } else { &message.now };
    steps.join(" ")
}
