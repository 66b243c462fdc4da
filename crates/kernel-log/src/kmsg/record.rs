//! `6,339,5140900,-,caller=T1;text\n DEVICE=+pci:0000:03:00.0\n`, with `\x0a` for bytes that are not printed.

use std::time::Duration;

use inventory::PciAddress;

/// A record of the kernel's own: what programs write to /dev/kmsg is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub sequence: u64,
    /// The kernel's clock, which stands while the machine sleeps.
    pub since_boot: Duration,
    pub text: Vec<u8>,
    /// `DEVICE=+pci:0000:03:00.0`, where the kernel says it.
    pub device: Option<PciAddress>,
}

impl Record {
    /// A record with the lines that continue it; `None` for what is none, or not of the kernel's facility.
    #[must_use]
    pub fn parse(record: &[u8]) -> Option<Self> {
        let mut lines = record.split(|byte| *byte == b'\n');
        let line = lines.next()?;
        let (header, text) = line.split_at(line.iter().position(|byte| *byte == b';')?);
        let mut fields = header.split(|byte| *byte == b',');
        let [priority, sequence, microseconds] = [fields.next(), fields.next(), fields.next()].map(number);
        // The lower three bits are the level. A program's facility is never 0 (devkmsg_write).
        if priority? >> 3 != 0 {
            return None;
        }
        // A fragment of a line (flag `c`) has no prefix of its driver's: pr_cont may print a name alone. Newer fields follow.
        if fields.next()?.contains(&b'c') {
            return None;
        }
        let device = lines.find_map(|line| line.strip_prefix(b" DEVICE=+pci:")).map(unescaped);
        Some(Self {
            sequence: sequence?,
            since_boot: Duration::from_micros(microseconds?),
            text: unescaped(text.get(1..)?),
            device: device.and_then(|device| String::from_utf8(device).ok()?.parse().ok()),
        })
    }
}

fn number(digits: Option<&[u8]>) -> Option<u64> {
    let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    str::from_utf8(digits).ok()?.parse().ok()
}

/// The kernel writes a backslash as `\x5c`, so that each `\x` is one of its own.
fn unescaped(mut text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    while let Some((byte, rest)) = text.split_first() {
        let escaped = text.strip_prefix(b"\\x").and_then(|rest| rest.split_at_checked(2));
        let escaped = escaped.and_then(|(digits, rest)| Some((hexadecimal(digits)?, rest)));
        let (byte, rest) = escaped.unwrap_or((*byte, rest));
        plain.push(byte);
        text = rest;
    }
    plain
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let digits = str::from_utf8(digits).ok().filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_records_are_read_and_what_programs_write_is_not() {
        let record = |sequence, microseconds, text: &[u8], device: Option<&str>| Record {
            sequence,
            since_boot: Duration::from_micros(microseconds),
            text: text.to_vec(),
            device: device.map(|device| device.parse().unwrap()),
        };
        for (text, expected) in [
            // Documentation/ABI/testing/dev-kmsg.
            (
                &b"7,160,424069,-;pci_root PNP0A03:00: host bridge window [io  0x0000-0x0cf7] (ignored)\n SUBSYSTEM=acpi\n DEVICE=+acpi:PNP0A03:00\n"[..],
                Some(record(160, 424_069, b"pci_root PNP0A03:00: host bridge window [io  0x0000-0x0cf7] (ignored)", None)),
            ),
            (b"6,339,5140900,-;NET: Registered protocol family 10\n", Some(record(339, 5_140_900, b"NET: Registered protocol family 10", None))),
            (b"30,340,5690716,-;udevd[80]: starting version 181\n", None),
            // With CONFIG_PRINTK_CALLER, and a device.
            (
                b"3,7,99,-,caller=T1;amdgpu 0000:03:00.0: failed\n SUBSYSTEM=pci\n DEVICE=+pci:0000:03:00.0\n",
                Some(record(7, 99, b"amdgpu 0000:03:00.0: failed", Some("0000:03:00.0"))),
            ),
            (b"3,7,99,-;x\n DEVICE=+pci:hub\n", Some(record(7, 99, b"x", None))),
            (b"3,7,99,-;x\n DEVICE=c226:0\n", Some(record(7, 99, b"x", None))),
            // The text cannot forge one: its line ends are escaped.
            (b"3,7,99,-;x\\x0a DEVICE=+pci:0000:01:00.0\n", Some(record(7, 99, b"x\n DEVICE=+pci:0000:01:00.0", None))),
            (b"4,8,1,c;fragment\n", None),
            (b"4,9,1,+;fragment", Some(record(9, 1, b"fragment", None))),
            (b"6,1,0,-;a;b\\x5cx41\\xe2\\x82\\xac\\x4 \\xzz\\x+1\\", Some(record(1, 0, b"a;b\\x41\xe2\x82\xac\\x4 \\xzz\\x+1\\", None))),
            (b"6,1,0,-;", Some(record(1, 0, b"", None))),
            (b"8,1,0,-;x", None),
            (b"12,1,0,-;x", None),
            (b"6,1,0;x", None),
            (b"6,1,-;x", None),
            (b"-6,1,0,-;x", None),
            (b"+6,1,0,-;x", None),
            (b",1,0,-;x", None),
            (b"6,1,99999999999999999999,-;x", None),
            (b"6,1,0,-", None),
            (b"6,1,0,-\n;x", None),
            (b" ;", None),
            (b"", None),
        ] {
            assert_eq!(Record::parse(text), expected, "{}", text.escape_ascii());
        }
    }
}
