//! The memory that a search takes.

use std::io::{self, Read};

use kernel_log::knowledge::Knowledge;
use kernel_log::scan::{LONGEST_LINE, Totals, scan};
use support::alone::alone;

const GIGABYTE: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;

/// A reader that gives its text again and again.
struct Repeated<'t> {
    text: &'t [u8],
    at: usize,
}

impl Read for Repeated<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let rest = &self.text[self.at..];
        let count = rest.len().min(to.len());
        to[..count].copy_from_slice(&rest[..count]);
        self.at = (self.at + count) % self.text.len();
        Ok(count)
    }
}

/// VmHWM of proc_pid_status(5), in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn a_gigabyte_takes_less_than_two_blocks_of_memory() {
    if !alone() {
        return;
    }
    let knowledge = Knowledge::built_in().unwrap();
    let sample = knowledge.messages()[0].patterns[0].sample.as_bytes();
    let ordinary = b"Jan  7 10:00:25 host systemd[1]: Started a service that has little to do with a GPU.\n";
    let log = [&ordinary.repeat(1000), sample, b"\n"].concat();
    let long = [&[b'x'; 1 << 20][..], sample, b"\n"].concat();
    for (text, hits_each, cut_each) in [(log, 1, 0), (long, 0, 1), (vec![0; 4096], 0, 0)] {
        let (before, length) = (peak(), text.len() as u64);
        let mut hits = 0;
        let input = Repeated { text: &text, at: 0 }.take(GIGABYTE / length * length);
        let totals = scan(knowledge, input, &mut |hit| {
            assert!(hit.text.len() <= LONGEST_LINE);
            hits += 1;
            Ok(())
        });
        let Totals { bytes, cut, .. } = totals.unwrap();
        assert!(bytes > GIGABYTE - 2 * MIB);
        assert_eq!(hits, GIGABYTE / length * hits_each);
        // A text of zeros is one line.
        assert_eq!(cut, if hits_each + cut_each == 0 { 1 } else { GIGABYTE / length * cut_each });
        let grown = peak() - before;
        assert!(grown < MIB, "{grown} bytes more than before");
    }
    assert!(peak() < 64 * MIB);
}
