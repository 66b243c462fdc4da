//! The kernel's messages in journald's files, as journalctl reads them.

use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, UNIX_EPOCH};

use host::timestamp::Timestamp;
use inventory::PciAddress;
use kernel_log::knowledge::{Found, Knowledge};
use kernel_log::origin::Origin;
use kernel_log::scan::Totals;
use reconcile::command::{self, Call, Programs, Stream, reported};
use root::Root;
use serde::Deserialize;

use super::matches::Line;

/// The most bytes of one entry's JSON. A message of the kernel's has 1,024 bytes at most, of which each becomes up to
/// four characters.
const LONGEST: usize = 256 << 10;

/// The most bytes of journalctl's stderr that are kept.
const WORDS: usize = 64 << 10;

/// A journal of years, whose reader may pause, has as long as it needs: 136 years.
const NO_LIMIT: Duration = Duration::from_secs(u32::MAX as u64);

/// journald keeps each machine's journal in a folder beneath these (systemd-journald.service(8)).
const JOURNALS: [&str; 2] = ["/run/log/journal", "/var/log/journal"];

/// Why the journal was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("journalctl is not installed: pipe a log to `rocworker explain -`")]
    NoJournalctl,
    #[error("there is no journal: pipe the machine's log, such as dmesg's, to `rocworker explain -`")]
    NoJournal,
    #[error("--since={since}: {reason}")]
    Since { since: String, reason: String },
    #[error(
        "the journal is not for this user to read: run this as root, or as a member of group systemd-journal or adm"
    )]
    NotAllowed,
    #[error(
        "none of the {0} messages that journalctl printed could be read: compare with journalctl --boot -k --output=json"
    )]
    Damaged(u64),
    #[error(transparent)]
    Command(#[from] command::Error),
    /// The writer of the matches fails.
    #[error(transparent)]
    Write(io::Error),
}

/// What a reading of the journal found, beside the messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct JournalRead {
    pub totals: Totals,
    /// Entries that were no JSON, had no message, or were too long.
    pub damaged: u64,
    /// journalctl's sentences on stderr, such as one for each file that it could not read.
    pub warnings: Vec<String>,
}

/// An entry as `journalctl --output=json` writes it (journalctl(1)).
#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "MESSAGE")]
    message: Message,
    #[serde(rename = "_KERNEL_DEVICE")]
    device: Option<serde_json::Value>,
    #[serde(rename = "SYSLOG_FACILITY")]
    facility: Option<serde_json::Value>,
    #[serde(rename = "__REALTIME_TIMESTAMP")]
    time: Option<String>,
}

impl Entry {
    /// journald has the transport `kernel` also for what programs write to /dev/kmsg, whose facility is never 0
    /// (devkmsg_write in kernel/printk/printk.c).
    fn is_of_a_program(&self) -> bool {
        self.facility.as_ref().and_then(|facility| facility.as_str()).is_some_and(|facility| facility != "0")
    }
}

/// Text, or bytes where it is no UTF-8 or has control characters.
#[derive(Deserialize)]
#[serde(untagged)]
enum Message {
    Text(String),
    Bytes(Vec<u8>),
    /// A field that an entry has several times.
    Several(Vec<Message>),
}

impl Message {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Bytes(bytes) => bytes,
            Self::Several(all) => all.into_iter().map(Self::bytes).collect::<Vec<_>>().join(&b'\n'),
        }
    }
}

/// How journalctl is run, and what its answer is read as: of this boot, or from `since` on.
fn argv(since: Option<&str>) -> Vec<String> {
    let period = since.map_or_else(|| "--boot".to_owned(), |since| format!("--since={since}"));
    let fields = "--output-fields=MESSAGE,_KERNEL_DEVICE,_TRANSPORT,SYSLOG_FACILITY";
    let mut argv = ["journalctl", "--no-pager", "--output=json", "--all", fields].map(str::to_owned).to_vec();
    argv.extend([period, "_TRANSPORT=kernel".to_owned()]);
    argv
}

/// Reads the journal of this boot, or from `since` on, and hands each known message to `each`.
///
/// # Errors
/// [`Error`] names each; `each` has received what was found before.
pub fn read<'k>(
    root: &Root,
    programs: &Programs,
    since: Option<&str>,
    knowledge: &'k Knowledge,
    each: &mut dyn FnMut(Line<'_>, &Found<'k>) -> io::Result<()>,
) -> Result<JournalRead, Error> {
    let argv = argv(since);
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let mut scan = Scan { knowledge, each, read: JournalRead::default(), line: Vec::new() };
    let (mut scanned, mut stderr) = (Ok(()), Vec::new());
    let ran = programs.call(Call { argv: &argv, input: None, limit: NO_LIMIT }, &mut |stream, chunk| {
        match stream {
            Stream::Stdout => scanned = scan.take(chunk),
            Stream::Stderr => stderr.extend(chunk.iter().take(WORDS - stderr.len())),
        }
        if scanned.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    scanned.and_then(|()| scan.end())?;
    let status = match ran {
        Err(command::Error::NotFound(_)) => return Err(Error::NoJournalctl),
        ran => ran?,
    };
    if status.success() {
        return whole(scan.read, &stderr, root);
    }
    let reported = reported(&stderr);
    Err(if reported.contains("insufficient permissions") {
        Error::NotAllowed
    } else if reported.contains("Failed to parse timestamp") {
        let since = since.unwrap_or_default().to_owned();
        Error::Since { since, reason: reported.trim_start_matches(": ").to_owned() }
    } else {
        command::Error::Failed { argv: argv.join(" "), status, reported }.into()
    })
}

/// Judges what a journalctl with exit code 0 printed: it ends so also where it may read nothing.
fn whole(mut read: JournalRead, stderr: &[u8], root: &Root) -> Result<JournalRead, Error> {
    let stderr = String::from_utf8_lossy(stderr);
    // journalctl shows such a user their own messages alone, and ends well.
    if read.totals.lines == 0 && stderr.contains("not seeing messages from other users") {
        return Err(Error::NotAllowed);
    }
    if read.damaged > 0 && read.damaged == read.totals.lines {
        return Err(Error::Damaged(read.damaged));
    }
    if read.totals.lines == 0 && !is_kept(root) {
        return Err(Error::NoJournal);
    }
    read.warnings =
        stderr.lines().filter(|line| !line.trim().is_empty()).take(20).map(str::to_owned).collect();
    Ok(read)
}

/// Whether journald has a folder here for the journal of some machine. With `--output=json` journalctl does not say
/// that it found none, and while files are rotated it may find none for a moment.
fn is_kept(root: &Root) -> bool {
    JOURNALS.iter().any(|folder| root.list(folder).is_ok_and(|machines| !machines.is_empty()))
}

struct Scan<'k, 'e> {
    knowledge: &'k Knowledge,
    each: &'e mut dyn FnMut(Line<'_>, &Found<'k>) -> io::Result<()>,
    read: JournalRead,
    /// The start of the line that has not ended yet: as much as an entry may have, and one byte.
    line: Vec<u8>,
}

impl Scan<'_, '_> {
    fn take(&mut self, chunk: &[u8]) -> Result<(), Error> {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            self.line.extend(text.iter().take(LONGEST + 1 - self.line.len()));
            if text.len() < part.len() {
                self.line()?;
            }
        }
        Ok(())
    }

    /// The last line may have no end.
    fn end(&mut self) -> Result<(), Error> {
        if self.line.is_empty() { Ok(()) } else { self.line() }
    }

    fn line(&mut self) -> Result<(), Error> {
        self.read.totals.lines += 1;
        let line = std::mem::take(&mut self.line);
        if line.len() > LONGEST {
            self.read.damaged += 1;
            return Ok(());
        }
        self.entry(&line)
    }

    fn entry(&mut self, line: &[u8]) -> Result<(), Error> {
        let Ok(entry) = serde_json::from_slice::<Entry>(line) else {
            self.read.damaged += 1;
            return Ok(());
        };
        let is_of_a_program = entry.is_of_a_program();
        let text = entry.message.bytes();
        self.read.totals.bytes += text.len() as u64;
        if is_of_a_program {
            return Ok(());
        }
        let device = entry.device.as_ref().and_then(|device| device.as_str()).and_then(device);
        let origin = Origin::of_record(&text, device);
        // kernel_log::kmsg relies on this too: the kernel never leaves the device out of a record that begins with one.
        if device.is_none() && origin.device.is_some() {
            return Ok(());
        }
        let found = self.knowledge.find_from(&origin);
        let Some(found) = found.filter(|found| !found.message.silent) else { return Ok(()) };
        let time = entry.time.as_deref().and_then(time);
        let line = Line { number: self.read.totals.lines, text: &text, time };
        (self.each)(line, &found).map_err(Error::Write)
    }
}

/// `+pci:0000:03:00.0` (systemd.journal-fields(7)).
fn device(text: &str) -> Option<PciAddress> {
    text.strip_prefix("+pci:")?.parse().ok()
}

/// Formats the journal's microseconds since 1970.
fn time(text: &str) -> Option<String> {
    let time = UNIX_EPOCH.checked_add(Duration::from_micros(text.parse().ok()?))?;
    Some(Timestamp::of(time).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: &str = "amdgpu: ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=2";

    type Lines = Vec<(u64, String, Option<String>, Option<String>)>;

    fn scanned(text: &str) -> (Lines, JournalRead) {
        let knowledge = Knowledge::built_in().unwrap();
        let mut lines = Lines::new();
        let mut each = |line: Line<'_>, found: &Found<'_>| {
            let text = String::from_utf8_lossy(line.text).into_owned();
            lines.push((line.number, text, found.device.map(|it| it.to_string()), line.time));
            Ok(())
        };
        let mut scan = Scan { knowledge, each: &mut each, read: JournalRead::default(), line: Vec::new() };
        text.as_bytes().chunks(1000).for_each(|chunk| scan.take(chunk).unwrap());
        scan.end().unwrap();
        let read = scan.read;
        (lines, read)
    }

    /// Entries as systemd 252 writes them, and damaged ones that no version writes.
    #[test]
    fn texts_bytes_and_repeated_messages_are_read_and_what_is_damaged_is_counted() {
        let bytes: Vec<String> = [TIMEOUT.as_bytes(), b" \xff"].concat().iter().map(u8::to_string).collect();
        let entries = [
            format!(
                r#"{{"MESSAGE":"{TIMEOUT}","_KERNEL_DEVICE":"+pci:0000:03:00.0","__REALTIME_TIMESTAMP":"1795430373130115"}}"#
            ),
            r#"{"MESSAGE":"cut off"#.to_owned(),
            format!(r#"{{"MESSAGE":[{}],"_KERNEL_DEVICE":["+pci:0000:03:00.0","b8:0"]}}"#, bytes.join(",")),
            format!(r#"{{"MESSAGE":["{TIMEOUT}","second"],"_KERNEL_DEVICE":"b8:0"}}"#),
            r#"{"MESSAGE":null}"#.to_owned(),
            format!(r#"{{"MESSAGE":"{}"}}"#, "x".repeat(1 << 20)),
            format!(r#"{{"MESSAGE":"{TIMEOUT}","__REALTIME_TIMESTAMP":"18446744073709551616"}}"#),
            // A module that is named like a prefix.
            r#"{"MESSAGE":"amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed: x"}"#.to_owned(),
        ];
        let (lines, read) = scanned(&entries.join("\n"));
        let expected = [
            (1, TIMEOUT.to_owned(), Some("0000:03:00.0".to_owned()), Some("2026-11-23T10:39:33Z".to_owned())),
            (3, format!("{TIMEOUT} \u{fffd}"), None, None),
            (4, format!("{TIMEOUT}\nsecond"), None, None),
            (7, TIMEOUT.to_owned(), None, None),
        ];
        assert_eq!(lines, expected);
        assert_eq!((read.damaged, read.totals.cut, read.totals.lines), (3, 0, 8));
    }
}
