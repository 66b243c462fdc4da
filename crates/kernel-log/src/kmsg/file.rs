//! A plain file of records: a line each, and lines that continue it begin with a blank.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};

use super::{LONGEST_RECORD, MOST_RECORDS, Read, Record, is_of_its_device};

/// The most bytes of one read.
const MOST_BYTES: usize = LONGEST_RECORD * MOST_RECORDS;

#[derive(Debug)]
pub(super) struct Lines {
    file: BufReader<File>,
    /// The beginning of the next record, at most the longest.
    record: Vec<u8>,
    /// Whether the last byte that was read ended a line.
    is_at_start: bool,
    /// Whether any record had its DEVICE=: a file may hold the records alone.
    has_devices: bool,
}

impl Lines {
    pub(super) fn new(file: File) -> Self {
        Self { file: BufReader::new(file), record: Vec::new(), is_at_start: true, has_devices: false }
    }

    /// Reads to the present end of the file, or to the limit.
    pub(super) fn read(&mut self) -> io::Result<Read> {
        let mut read = self.records()?;
        self.has_devices |= read.records.iter().any(|record| record.device.is_some());
        if self.has_devices {
            read.records.retain(is_of_its_device);
        }
        Ok(read)
    }

    fn records(&mut self) -> io::Result<Read> {
        let (mut read, mut bytes) = (Read::default(), 0);
        while read.records.len() < MOST_RECORDS && bytes < MOST_BYTES {
            let text = self.file.fill_buf()?;
            let Some(first) = text.first() else {
                read.records.extend(Record::parse(&self.record));
                self.record.clear();
                return Ok(read);
            };
            if self.is_at_start && *first != b' ' {
                read.records.extend(Record::parse(&self.record));
                self.record.clear();
            }
            let length = memchr::memchr(b'\n', text).map_or(text.len(), |end| end + 1);
            let line = text.get(..length).unwrap_or_default();
            let room = LONGEST_RECORD - self.record.len();
            self.record.extend(line.iter().take(room));
            self.is_at_start = line.ends_with(b"\n");
            self.file.consume(length);
            bytes += length;
        }
        read.more = true;
        Ok(read)
    }
}
