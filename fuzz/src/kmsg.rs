//! Records of the kernel's log, from a file in the place of /dev/kmsg, read a second time with words instead of bytes.

use kernel_log::kmsg::{Kmsg, Record};
use kernel_log::origin::Origin;
use root::Root;

thread_local! {
    static PLACE: tempfile::TempDir = tempfile::tempdir().expect("a folder");
}

pub fn check(data: &[u8]) {
    let records = PLACE.with(|place| {
        std::fs::create_dir_all(place.path().join("dev")).expect("a folder in it");
        std::fs::write(place.path().join("dev/kmsg"), data).expect("a file in it");
        let mut kmsg = Kmsg::open(&Root::open(place.path()).expect("a Root")).expect("a plain file");
        let read = kmsg.read().expect("a plain file can be read");
        assert!(!read.lost && !read.more);
        read.records
    });
    // The kernel's own texts are ASCII; bytes are read as if they were Latin-1, which keeps each.
    let text: String = data.iter().map(|byte| char::from(*byte)).collect();
    let mut expected = Vec::new();
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let mut device = None;
        while let Some(more) = lines.next_if(|line| line.starts_with(' ')) {
            if device.is_none() {
                device = more.trim_end_matches('\n').strip_prefix(" DEVICE=+pci:").map(plain);
            }
        }
        expected.extend(record(line.strip_suffix('\n').unwrap_or(line), device));
    }
    // The kernel writes the device of a record beside it: without it a driver's prefix is a program's.
    if expected.iter().any(|record| record.device.is_some()) {
        expected.retain(|record| {
            record.device.is_some() || Origin::of_record(&record.text, None).device.is_none()
        });
    }
    assert_eq!(records, expected, "{text:?}");
}

fn record(line: &str, device: Option<Vec<u8>>) -> Option<Record> {
    let (header, text) = line.split_once(';')?;
    let fields: Vec<&str> = header.splitn(4, ',').collect();
    let [priority, sequence, microseconds, more] = fields[..] else { return None };
    let is_fragment = more.split(',').next().is_some_and(|flags| flags.contains('c'));
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| !text.starts_with('+'));
    let device = device.and_then(|bytes| String::from_utf8(bytes).ok());
    let record = Record {
        sequence: number(sequence)?,
        since_boot: std::time::Duration::from_micros(number(microseconds)?),
        text: plain(text),
        device: device.and_then(|text| text.parse().ok()),
    };
    (number(priority)? < 8 && !is_fragment).then_some(record)
}

fn plain(text: &str) -> Vec<u8> {
    let mut pieces = text.split("\\x");
    let bytes = |text: &str| text.chars().map(|c| c as u8).collect::<Vec<u8>>();
    let mut plain = bytes(pieces.next().unwrap_or_default());
    for piece in pieces {
        let digits: Vec<u32> = piece.chars().take(2).map_while(|c| c.to_digit(16)).collect();
        match digits[..] {
            [high, low] => {
                plain.push((high * 16 + low) as u8);
                plain.extend(bytes(&piece[2..]));
            }
            _ => plain.extend(bytes(&format!("\\x{piece}"))),
        }
    }
    plain
}
