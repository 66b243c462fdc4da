//! Which device a line of the kernel's log is of.

use amdgpu::Address;
use memchr::{memchr_iter, memmem};

/// The device from which a port says that an error came. Else the address that the kernel put in front of the message
/// (`dev_printk_emit` in drivers/base/core.c: driver, address, colon), else the first address of the line.
///
/// What follows `[drm:` is the message itself, with names of processes in it, and tells nothing of the device.
pub(crate) fn of(line: &[u8]) -> Option<Address> {
    let line = memmem::find(line, b"[drm:").and_then(|end| line.get(..end)).unwrap_or(line);
    if let Some(source) = source(line) {
        return Some(source);
    }
    let mut first = None;
    for dot in memchr_iter(b'.', line) {
        let Some((address, is_prefix)) = around(line, dot) else { continue };
        if is_prefix {
            return Some(address);
        }
        first = first.or(Some(address));
    }
    first
}

/// What drivers/pci/pcie/aer.c (aer_print_port_info) and dpc.c put in front of the device that sent an error.
const SENT_BY: [&[u8]; 2] = [b" received from ", b" received, first one from "];

fn source(line: &[u8]) -> Option<Address> {
    SENT_BY.iter().find_map(|words| {
        let start = memmem::find(line, words)? + words.len();
        let dot = start + memchr::memchr(b'.', line.get(start..)?)?;
        around(line, dot).map(|(address, _)| address)
    })
}

/// The address with its dot there, and whether it stands as a prefix: `amdgpu 0000:03:00.0: `.
///
/// An address without its domain is one only as the IOMMU's driver writes it: `device=03:00.0`
/// (drivers/iommu/amd/iommu.c). Else it could be a part of a time.
fn around(line: &[u8], dot: usize) -> Option<(Address, bool)> {
    const BUS_AND_DEVICE: usize = "03:00".len();
    let short = dot.checked_sub(BUS_AND_DEVICE)?;
    let before = line.get(..short)?;
    let start = match before.strip_suffix(b":") {
        Some(before) => short - 1 - before.iter().rev().take_while(|byte| byte.is_ascii_hexdigit()).count(),
        None if before.ends_with(b"device=") => short,
        None => return None,
    };
    let (before, behind) = (line.get(..start)?, line.get(dot + 2..)?);
    let is_of_a_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let goes_on = match behind {
        // The end of a sentence.
        [b'.', next, ..] => is_of_a_word(next),
        [next, ..] => is_of_a_word(next) && *next != b'.',
        [] => false,
    };
    if goes_on || (start < short && before.last().is_some_and(is_of_a_word)) {
        return None;
    }
    let address = str::from_utf8(line.get(start..dot + 2)?).ok()?.parse().ok()?;
    let is_colon = matches!(behind, [b':'] | [b':', b' ', ..]);
    let is_driver = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_prefix = is_colon && matches!(before, [.., name, b' '] if is_driver(name));
    Some((address, is_prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_of_the_device_in_front_of_the_message_else_of_the_first() {
        for (line, expected) in [
            ("amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", Some("0000:03:00.0")),
            ("[   12.5] amdgpu 0001:C1:1F.7: amdgpu: GPU reset begin!", Some("0001:c1:1f.7")),
            ("amdgpu 10000:e1:00.0: amdgpu: GPU reset begin!", Some("10000:e1:00.0")),
            ("amdgpu 0000:03:00.0: [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring", Some("0000:03:00.0")),
            ("amdgpu 0000:03:00.0:", Some("0000:03:00.0")),
            (
                "pcieport 0000:00:01.1: AER: Uncorrectable (Fatal) error message received from 0000:03:00.0",
                Some("0000:03:00.0"),
            ),
            (
                "pcieport 0000:00:01.1: AER: Multiple Correctable Error messages received, first one from 0000:03:00.1",
                Some("0000:03:00.1"),
            ),
            (
                "pcieport 0015:00:00.0: DPC: containment event, status:0x200d, ERR_FATAL received from 0015:01:00.0",
                Some("0015:01:00.0"),
            ),
            (
                "pcieport 0000:00:01.1: AER: Correctable error message received from nobody.",
                Some("0000:00:01.1"),
            ),
            ("[ from 0000:01:00.0 ] amdgpu 0000:03:00.0: amdgpu: failed", Some("0000:03:00.0")),
            ("[drm] Initialized amdgpu 3.42.0 20150101 for 0000:03:00.0 on minor 0", Some("0000:03:00.0")),
            ("{1}[Hardware Error]:   device_id: 0000:11:01.0", Some("0000:11:01.0")),
            ("the link of 0000:11:01.0.", Some("0000:11:01.0")),
            ("(0000:11:01.0), 0000:12:01.0", Some("0000:11:01.0")),
            ("DEVICE=+pci:0000:11:01.0", Some("0000:11:01.0")),
            (
                "AMD-Vi: Event logged [IO_PAGE_FAULT device=03:00.0 domain=0x0000 address=0x0]",
                Some("0000:03:00.0"),
            ),
            ("AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:03:00.0 domain=0x00]", Some("0000:03:00.0")),
            // What a process can be named.
            ("[drm:amdgpu_job_timedout [amdgpu]] process a 0000:01:00.0: pid 0", None),
            ("[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout", None),
            // Times, versions, and other numbers.
            ("10:00:25.1 host kernel: amdgpu: failed", None),
            ("2026-01-07T10:00:25.1 host kernel: amdgpu: failed", None),
            ("2026-01-07T10:00:25.890123-06:00 amdgpu: failed", None),
            ("kern 3.42.0 192.168.1.1 00:00.0 x03:00.0 mydevice:03:00.0", None),
            ("x0000:03:00.0 0000:03:00.0_a 0000:03:00.01 0000:03:00.0.1 123456789:03:00.0", None),
            ("0000:03:20.0 0000:03:00.8 000:03:00.0 0000:3:00.0 0000:03:00. 0000:03:00", None),
            ("1.2 .", None),
            ("", None),
        ] {
            assert_eq!(of(line.as_bytes()).map(|it| it.to_string()).as_deref(), expected, "{line}");
        }
        assert!(of(b"\xff amdgpu 0000:03:00.0: \xfe").is_some());
    }
}
