//! Finds who puts a record into the kernel's log, by the record's prefix, and the device that the record is
//! about.
//!
//! The kernel writes names that users choose into its records: of processes, mount options, files, devices on USB. What
//! stands in a record behind such a name proves nothing, so that a message counts only at the record's beginning.

use inventory::PciAddress;
use memchr::memmem;

use crate::pattern::LONGEST_PROCESS_NAME;
use crate::stamp::{Stamped, stripped};

/// A record of the kernel's log, or a line of a text that may be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin<'t> {
    pub(crate) speaker: Speaker,
    /// The device in front of the message, as the kernel wrote it there or beside the record.
    pub device: Option<PciAddress>,
    /// The record's text as the kernel wrote it.
    pub text: &'t [u8],
    /// The length of the speaker's prefix in the text.
    prefix: usize,
    /// The places in the text where a message can begin: behind each prefix that a part of a driver adds.
    pub(crate) starts: Vec<usize>,
    time: &'t [u8],
}

/// The source of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// amdgpu with its KFD, or a part of the kernel that speaks for its device or its module.
    Amdgpu,
    /// The PCI core or an interim driver, for a card, its audio function or a bridge above it.
    OtherDevice,
    /// A driver that no card of AMD's and no bridge has.
    OtherVendor,
    /// The machine's firmware (drivers/firmware/efi/cper.c).
    Firmware,
    /// A line of a text without anything in front of the message: whoever copied it left that out.
    Copied,
    /// Another part of the kernel, or text that only looks like it.
    Other,
    /// A program, or a rule of the packet filter.
    User,
}

/// The names that `dev_printk_emit` (drivers/base/core.c) puts before an address that may be an AMD GPU's,
/// its audio function's or a bridge's above it: the bound driver, or the bus where there is none.
const MAY_BE_BOUND: [&[u8]; 7] =
    [b"pci", b"pcieport", b"vfio-pci", b"pci-stub", b"pciback", b"gim", b"snd_hda_intel"];

/// NF_LOG_PREFIXLEN - 1 of include/uapi/linux/netfilter/nf_log.h.
const LONGEST_RULE_PREFIX: usize = 127;

/// The most prefixes that are stripped: no driver's message has more.
const MOST_STARTS: usize = 16;

impl<'t> Origin<'t> {
    /// The origin of a record of /dev/kmsg or the journal. A record is one even with line ends in it.
    /// `device`: its `DEVICE=+pci:…` or `_KERNEL_DEVICE`.
    #[must_use]
    pub fn of_record(text: &'t [u8], device: Option<PciAddress>) -> Self {
        // Netfilter's records have no device, and a process's name in amdgpu's records may look like
        // netfilter's.
        let origin = Self::of(text, b"", false, device.is_none() && is_of_netfilter(text));
        match (origin.device, device) {
            // The kernel takes both from one device (dev_printk_emit of drivers/base/core.c).
            (Some(named), Some(device)) if named != device => Self { speaker: Speaker::User, ..origin },
            // No name that a user chooses gets a record a device.
            (None, Some(_)) => Self { speaker: Speaker::Amdgpu, device, ..origin },
            _ => origin,
        }
    }

    /// The origin of a line of a text, in which a program may have put something before the record.
    #[must_use]
    pub fn of_line(line: &'t [u8]) -> Self {
        let Some(Stamped { record, time, is_stamped }) = stripped(line) else {
            return Self { speaker: Speaker::User, ..Self::of(b"", b"", false, false) };
        };
        Self::of(record, time, !is_stamped, is_of_netfilter(record))
    }

    fn of(text: &'t [u8], time: &'t [u8], is_bare: bool, is_of_netfilter: bool) -> Self {
        let (speaker, device, prefix) = match prefix(text) {
            _ if is_of_netfilter => (Speaker::User, None, 0),
            (Speaker::Other, _, 0) if is_bare && !text.starts_with(b" ") => {
                (Speaker::Copied, None, word_prefix(text).unwrap_or(0))
            }
            prefix => prefix,
        };
        let mut starts = vec![0];
        let mut at = prefix;
        while prefix > 0 && starts.len() < MOST_STARTS {
            let rest = text.get(at..).unwrap_or_default();
            let blank = rest.len() - rest.trim_ascii_start().len();
            starts.extend([at, at + blank]);
            starts.dedup();
            let Some(length) = inner_prefix(text.get(at + blank..).unwrap_or_default()) else { break };
            at += blank + length;
        }
        Self { speaker, device, text, prefix, starts, time }
    }

    /// The text before the message, without any name that a user could have chosen.
    #[must_use]
    pub fn front(&self) -> String {
        let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        // `T`, `Thu` and `Sep10` are of times. A word with more letters may be a person's, and more dots an address.
        let is_letter = |c: &char| !c.is_ascii_digit() && !".:,+-".contains(*c);
        let is_of_time = |word: &str| {
            word.chars().filter(is_letter).count() <= 3
                && (word.contains(':') || word.matches('.').count() <= 1)
        };
        let time = match self.time {
            time if !shown(time).split(' ').all(is_of_time) => String::new(),
            [] => String::new(),
            time if time.starts_with(b"2") && time.contains(&b'T') => format!("{} kernel: ", shown(time)),
            time => format!("[{}] ", shown(time)),
        };
        let speaker = match (self.speaker, self.device) {
            (Speaker::Amdgpu, None) => "amdgpu: ".to_owned(),
            (Speaker::Amdgpu | Speaker::OtherDevice | Speaker::OtherVendor | Speaker::Firmware, _) => {
                format!("{} ", shown(self.text.get(..self.prefix).unwrap_or_default()).trim_end())
            }
            (Speaker::Copied | Speaker::Other | Speaker::User, _) => String::new(),
        };
        time + &speaker
    }

    /// The device that sent an error to this port: what drivers/pci/pcie/aer.c (aer_print_port_info) and dpc.c write.
    pub(crate) fn sent_by(&self) -> Option<PciAddress> {
        const SENT_BY: [&[u8]; 2] = [b" received from ", b" received, first one from "];
        let from = |words| Some(memmem::find(self.text, words)? + words.len());
        let start = SENT_BY.into_iter().find_map(from)?;
        parsed(self.text.get(start..)?.split(u8::is_ascii_whitespace).next()?)
    }
}

/// `0000:03:00.0`, or without its domain as the IOMMU's driver writes it: `03:00.0` (drivers/iommu/amd/iommu.c).
pub(crate) fn parsed(address: &[u8]) -> Option<PciAddress> {
    let text = str::from_utf8(address).ok()?;
    text.parse().ok().or_else(|| format!("0000:{text}").parse().ok())
}

/// The speaker, the device, and how long the prefix is.
fn prefix(text: &[u8]) -> (Speaker, Option<PciAddress>, usize) {
    if let Some((driver, address, length)) = of_device(text) {
        let speaker = match driver {
            b"amdgpu" => Speaker::Amdgpu,
            driver if MAY_BE_BOUND.contains(&driver) => Speaker::OtherDevice,
            _ => Speaker::OtherVendor,
        };
        return (speaker, Some(address), length);
    }
    for module in [&b"amdgpu: "[..], b"kfd kfd: ", b"kfd: "] {
        if text.starts_with(module) {
            return (Speaker::Amdgpu, None, module.len());
        }
    }
    if let Some(length) = of_drm(text) {
        return (Speaker::Amdgpu, None, length);
    }
    const FROM_FIRMWARE: &[u8] = b"[Hardware Error]:";
    match numbered(text) {
        Some(length) if text.get(length..).is_some_and(|it| it.starts_with(FROM_FIRMWARE)) => {
            (Speaker::Firmware, None, length + FROM_FIRMWARE.len())
        }
        _ => (Speaker::Other, None, of_another_part(text)),
    }
}

/// Whether netfilter logged a packet. A rule's `--log-prefix` stands where a driver's prefix would be. What
/// netfilter writes behind the prefix is longer than a process's name, which amdgpu writes into its own
/// messages.
fn is_of_netfilter(text: &[u8]) -> bool {
    // ebtables writes a blank behind the prefix.
    memmem::find_iter(text, b"IN=").take_while(|at| *at <= LONGEST_RULE_PREFIX + 1).any(|at| {
        let packet = text.get(at..).unwrap_or_default();
        behind_devices(packet)
            .and_then(behind_address)
            .is_some_and(|behind| packet.len() - behind.len() > LONGEST_PROCESS_NAME)
    })
}

/// The rest behind `IN=DEVICE OUT=DEVICE ` (nf_log_dump_packet_common in net/netfilter/nf_log_syslog.c, and
/// net/bridge/netfilter/ebt_log.c) and behind the fields that may follow. A device's name has no blank.
fn behind_devices(packet: &[u8]) -> Option<&[u8]> {
    let behind = behind_word(packet.strip_prefix(b"IN=")?).strip_prefix(b" OUT=")?;
    let mut behind = behind_word(behind).strip_prefix(b" ")?;
    for name in [&b"PHYSIN="[..], b"PHYSOUT=", b"VPROTO=", b"VID="] {
        if let Some(value) = behind.strip_prefix(name) {
            behind = behind_word(value).strip_prefix(b" ")?;
        }
    }
    // A tunnel's device has no address.
    Some(behind.strip_prefix(b"MAC= ").unwrap_or(behind))
}

/// The rest behind a packet's first address, or behind the words in place of an address.
fn behind_address(text: &[u8]) -> Option<&[u8]> {
    const WORDS: [&[u8]; 4] = [b"TRUNCATED", b"MAC source = ", b"MACSRC=", b"ARP HTYPE="];
    if text.is_empty() {
        return Some(text);
    }
    if let Some(behind) = WORDS.iter().find_map(|words| text.strip_prefix(*words)) {
        return Some(behind);
    }
    let address = text.strip_prefix(b"MAC=").or_else(|| text.strip_prefix(b"SRC="))?;
    let is_of_address = |byte: &&u8| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':');
    let length = address.iter().take_while(is_of_address).count();
    address.get(length..).filter(|_| length > 0)
}

fn behind_word(text: &[u8]) -> &[u8] {
    let length = text.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
    text.get(length..).unwrap_or_default()
}

/// `amdgpu 0000:03:00.0: `, as dev_printk_emit in drivers/base/core.c writes it. TASK_COMM_LEN leaves a process 15 bytes,
/// which this has not room in.
fn of_device(text: &[u8]) -> Option<(&[u8], PciAddress, usize)> {
    let blank = memchr::memchr(b' ', text)?;
    let (driver, rest) = text.split_at_checked(blank)?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if driver.is_empty() || !driver.iter().all(is_name) {
        return None;
    }
    let address = rest.get(1..)?;
    let end = address.iter().position(u8::is_ascii_whitespace).unwrap_or(address.len());
    let address = address.get(..end)?.strip_suffix(b":")?;
    let parsed = str::from_utf8(address).ok()?.parse().ok()?;
    Some((driver, parsed, (blank + 1 + address.len() + ": ".len()).min(text.len())))
}

/// `[drm] `, `[drm:amdgpu_job_timedout [amdgpu]] `, `[drm ERROR :gfx_v9_0_priv_reg_irq] `
/// (drivers/gpu/drm/drm_print.c): but none of another module's.
fn of_drm(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b"[drm")?;
    let rest = rest.strip_prefix(b" ERROR ").unwrap_or(rest);
    let rest = match rest.strip_prefix(b":") {
        Some(function) => {
            let is_of_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
            let rest = function.get(function.iter().take_while(is_of_name).count()..)?;
            rest.strip_prefix(b" [amdgpu]").unwrap_or(rest)
        }
        None => rest,
    };
    Some(text.len() - rest.strip_prefix(b"] ")?.len())
}

/// The length of the prefix of a part of the kernel that has no PCI device: `iommu ivhd0: ` and `AMD-Vi: `
/// (drivers/iommu/amd), `DMAR: ` (drivers/iommu/intel), and audit's `audit: type=1400 audit(1764.5:12): `,
/// also in the form of auditd's file.
fn of_another_part(text: &[u8]) -> usize {
    let is_id = |text: &[u8]| text.iter().all(u8::is_ascii_alphanumeric);
    let of_iommu = || split_once(text.strip_prefix(b"iommu ")?, b": ").filter(|(name, _)| is_id(name));
    let of_audit = || {
        let record = text.strip_prefix(b"audit: ").unwrap_or(text).strip_prefix(b"type=")?;
        let (_, stamp) = split_once(record, b" ").filter(|(kind, _)| is_id(kind))?;
        let stamp = stamp.strip_prefix(b"msg=").unwrap_or(stamp).strip_prefix(b"audit(")?;
        let is_of_stamp = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b':');
        split_once(stamp, b"): ").filter(|(stamp, _)| stamp.iter().all(is_of_stamp))
    };
    // AMD's IOMMU names itself by its address: `AMD-Vi: IOMMU 0000:00:00.2: `.
    let of_amd = || {
        let behind = text.strip_prefix(b"AMD-Vi: ")?;
        let of_one =
            || split_once(behind.strip_prefix(b"IOMMU ")?, b": ").filter(|(name, _)| parsed(name).is_some());
        Some(of_one().map_or(behind, |(_, behind)| behind))
    };
    let of_dmar = || text.strip_prefix(b"DMAR: ");
    let behind = of_amd().or_else(of_dmar).or_else(|| Some(of_iommu().or_else(of_audit)?.1));
    behind.map_or(0, |behind| text.len() - behind.len())
}

/// The length of the prefix that a part of a driver adds behind the driver's own prefix.
fn inner_prefix(text: &[u8]) -> Option<usize> {
    // The number of a RAS event (RAS_EVENT_LOG of amdgpu_ras.h), and a block or a function: `[gfxhub] `.
    if let Some(length) = of_drm(text).or_else(|| numbered(text)).or_else(|| bracket(text)) {
        return Some(length);
    }
    // Each number of `socket: 0, die: 0, 2 …` (amdgpu_ras.c).
    let number = || {
        let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let behind = text.get(length..)?;
        let comma = usize::from(behind.starts_with(b","));
        (length > 0 && behind.get(comma) == Some(&b' ')).then_some(length + comma + 1)
    };
    word_prefix(text).or_else(number)
}

/// `amdgpu: `, `AER: `, `mc: `, and what drivers/gpu/drm/drm_print.c and aer_print_port_info of drivers/pci/pcie/aer.c write.
fn word_prefix(text: &[u8]) -> Option<usize> {
    if let Some(word) = [&b"*ERROR* "[..], b"Multiple "].into_iter().find(|word| text.starts_with(word)) {
        return Some(word.len());
    }
    let (word, _) = split_once(text, b": ")?;
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (!word.is_empty() && word.iter().all(is_of_word)).then_some(word.len() + 2)
}

/// The length of a number in braces, such as `{15}`.
fn numbered(text: &[u8]) -> Option<usize> {
    let digits = text.strip_prefix(b"{")?;
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (length > 0 && digits.get(length) == Some(&b'}')).then_some(length + 2)
}

/// The length of a word in brackets.
fn bracket(text: &[u8]) -> Option<usize> {
    let inside = text.strip_prefix(b"[")?;
    let end = inside.iter().position(|byte| matches!(byte, b']' | b'[') || byte.is_ascii_whitespace())?;
    (inside.get(end) == Some(&b']')).then_some(end + 2)
}

fn split_once<'t>(text: &'t [u8], by: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let at = memmem::find(text, by)?;
    Some((text.get(..at)?, text.get(at + by.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(origin: &Origin<'_>) -> (Speaker, String, String) {
        let device = origin.device.map_or_else(|| "-".to_owned(), |device| device.to_string());
        let body = origin.starts.last().and_then(|start| origin.text.get(*start..)).unwrap_or_default();
        (origin.speaker, device, String::from_utf8_lossy(body).into_owned())
    }

    /// The last place at which a message can begin is behind all prefixes.
    #[test]
    fn the_prefix_of_a_record_tells_who_speaks_and_of_which_device() {
        use Speaker::{Amdgpu, Firmware, Other, OtherDevice, OtherVendor, User};
        for (text, speaker, device, body) in [
            ("amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", Amdgpu, "0000:03:00.0", "GPU reset begin!"),
            ("amdgpu 0001:C1:1F.7: GPU reset begin!", Amdgpu, "0001:c1:1f.7", "GPU reset begin!"),
            ("amdgpu 10000:e1:00.0: {1}socket: 6, die: 1, 1533 new x", Amdgpu, "10000:e1:00.0", "new x"),
            (
                "amdgpu 0000:03:00.0: [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring x",
                Amdgpu,
                "0000:03:00.0",
                "ring x",
            ),
            ("amdgpu 0000:03:00.0:", Amdgpu, "0000:03:00.0", ""),
            ("amdgpu: mc: Failed to load", Amdgpu, "-", "Failed to load"),
            ("amdgpu: [powerplay] \n failed to send", Amdgpu, "-", "failed to send"),
            ("kfd kfd: amdgpu: skipped device 1002:7300", Amdgpu, "-", "skipped device 1002:7300"),
            ("[drm] *ERROR* ring x", Amdgpu, "-", "ring x"),
            ("[drm:amdgpu_cs_ioctl [amdgpu]] *ERROR* Failed", Amdgpu, "-", "Failed"),
            ("[drm:psp_sw_init] *ERROR* Failed", Amdgpu, "-", "Failed"),
            ("[drm ERROR :gfx_v9_0_priv_reg_irq] Illegal", Amdgpu, "-", "Illegal"),
            (
                "pcieport 0000:00:01.1: AER: Multiple Corrected error",
                OtherDevice,
                "0000:00:01.1",
                "Corrected error",
            ),
            ("nvme 0000:34:00.0: PCIe Bus Error", OtherVendor, "0000:34:00.0", "PCIe Bus Error"),
            ("vfio-pci 0000:34:00.0: PCIe Bus Error", OtherDevice, "0000:34:00.0", "PCIe Bus Error"),
            ("{2}[Hardware Error]:   device_id: 0", Firmware, "-", "0"),
            ("AMD-Vi: Completion-Wait loop timed out", Other, "-", "Completion-Wait loop timed out"),
            ("iommu ivhd0: AMD-Vi: Event logged", Other, "-", "Event logged"),
            ("audit: type=1400 audit(1764.5:12): avc:  denied", Other, "-", "denied"),
            ("type=AVC msg=audit(1764.5:12): avc:  denied", Other, "-", "denied"),
            // Another module's, and what is no prefix.
            (
                "[drm:radeon_ring_test [radeon]] *ERROR* ring x",
                Other,
                "-",
                "[drm:radeon_ring_test [radeon]] *ERROR* ring x",
            ),
            ("[drmx] ring x", Other, "-", "[drmx] ring x"),
            ("[drm:x [amdgpu] ring x", Other, "-", "[drm:x [amdgpu] ring x"),
            ("amdgpu:x", Other, "-", "amdgpu:x"),
            ("amdgpu 0000:03:00.0 eth0: x", Other, "-", "amdgpu 0000:03:00.0 eth0: x"),
            ("amdgpu 0000:03:00.8: x", Other, "-", "amdgpu 0000:03:00.8: x"),
            (
                "amdgpu: ring x IN=eth0 OUT= MAC=52:54 SRC=10.0.0.1",
                User,
                "-",
                "amdgpu: ring x IN=eth0 OUT= MAC=52:54 SRC=10.0.0.1",
            ),
            (
                "amdgpu: x IN=eth0 OUT=br0 MAC source = 52:54:00:12:34:56 MAC dest = 52:54:00:12:34:57",
                User,
                "-",
                "amdgpu: x IN=eth0 OUT=br0 MAC source = 52:54:00:12:34:56 MAC dest = 52:54:00:12:34:57",
            ),
            ("amdgpu: xIN= OUT=eth0 TRUNCATED", User, "-", "amdgpu: xIN= OUT=eth0 TRUNCATED"),
            ("amdgpu: xIN=tun0 OUT= MAC= SRC=fd00::1", User, "-", "amdgpu: xIN=tun0 OUT= MAC= SRC=fd00::1"),
            (
                "amdgpu: xIN=br0 OUT= PHYSIN=eth0 MAC=aa SRC=",
                User,
                "-",
                "amdgpu: xIN=br0 OUT= PHYSIN=eth0 MAC=aa SRC=",
            ),
            ("amdgpu: xIN=eth0 OUT= ARP HTYPE=1", User, "-", "amdgpu: xIN=eth0 OUT= ARP HTYPE=1"),
            // What a process's name has room for.
            ("amdgpu: process IN= OUT= SRC=1. pid 1", Amdgpu, "-", "process IN= OUT= SRC=1. pid 1"),
            ("amdgpu: process IN= OUT= MAC=ab pid 1", Amdgpu, "-", "process IN= OUT= MAC=ab pid 1"),
            (
                "amdgpu: process IN= OUT=  pid 1 thread x SRC=1.1.1.1 pid 2",
                Amdgpu,
                "-",
                "process IN= OUT=  pid 1 thread x SRC=1.1.1.1 pid 2",
            ),
            ("x 0000:de:00.0:[7]: segfault at 0", Other, "-", "x 0000:de:00.0:[7]: segfault at 0"),
            ("tmpfs: amdgpu: x", Other, "-", "tmpfs: amdgpu: x"),
            ("[Hardware Error]: device_id", Other, "-", "[Hardware Error]: device_id"),
            ("[", Other, "-", "["),
            ("", Other, "-", ""),
        ] {
            let origin = Origin::of_record(text.as_bytes(), None);
            assert_eq!(shown(&origin), (speaker, device.to_owned(), body.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_the_kernel_keeps_beside_a_record_agrees_with_its_prefix_or_stands_for_it() {
        let record = |text: &str, device: &str| {
            let origin = Origin::of_record(text.as_bytes(), device.parse().ok());
            (origin.speaker, origin.device.map(|device| device.to_string()))
        };
        let device = || Some("0000:03:00.0".to_owned());
        assert_eq!(record("amdgpu 0000:03:00.0: x", "0000:03:00.0"), (Speaker::Amdgpu, device()));
        assert_eq!(record("amdgpu 0000:03:00.0: x", "0000:04:00.0"), (Speaker::User, device()));
        assert_eq!(record("x", "0000:03:00.0"), (Speaker::Amdgpu, device()));
        let packet = "amdgpu 0000:03:00.0: xIN=eth0 OUT= TRUNCATED";
        assert_eq!(record(packet, "0000:03:00.0"), (Speaker::Amdgpu, device()));
        assert_eq!(record(packet, ""), (Speaker::User, None));
    }

    #[test]
    fn a_port_names_the_device_that_sent_an_error() {
        for (body, expected) in [
            ("AER: Uncorrectable (Fatal) error message received from 0000:03:00.0", Some("0000:03:00.0")),
            (
                "AER: Multiple Correctable Error messages received, first one from 0000:03:00.1",
                Some("0000:03:00.1"),
            ),
            (
                "DPC: containment event, status:0x200d, ERR_FATAL received from 0015:01:00.0",
                Some("0015:01:00.0"),
            ),
            ("AER: Correctable error message received from nobody.", None),
            ("AER: Corrected error received: 0000:03:00.0", None),
        ] {
            let text = format!("pcieport 0000:00:01.1: {body}");
            let found = Origin::of_record(text.as_bytes(), None).sent_by();
            assert_eq!(found.map(|it| it.to_string()).as_deref(), expected, "{body}");
        }
        assert_eq!(parsed(b"03:00.0").map(|it| it.to_string()).as_deref(), Some("0000:03:00.0"));
        assert_eq!(parsed(b"67df"), None);
    }

    #[test]
    fn a_line_of_a_text_has_its_time_and_may_be_the_message_alone() {
        for (line, speaker, front) in [
            ("GPU reset begin!", Speaker::Copied, ""),
            ("*ERROR* ring x", Speaker::Copied, ""),
            ("modprobe: ERROR: could not insert", Speaker::Copied, ""),
            ("[   12.5] ring x", Speaker::Other, "[   12.5] "),
            (" GPU reset begin!", Speaker::Other, ""),
            ("[   12.5] [drm:x [amdgpu]] ring x", Speaker::Amdgpu, "[   12.5] amdgpu: "),
            (
                "2026-01-07T10:00:25+01:00 kernel: amdgpu 0000:03:00.0: x",
                Speaker::Amdgpu,
                "2026-01-07T10:00:25+01:00 kernel: amdgpu 0000:03:00.0: ",
            ),
            (
                "Jan  7 10:00:25 box kernel: nvme 0000:34:00.0: x",
                Speaker::OtherVendor,
                "[Jan  7 10:00:25] nvme 0000:34:00.0: ",
            ),
            ("<11>amdgpu 0000:03:00.0: x", Speaker::User, ""),
        ] {
            let origin = Origin::of_line(line.as_bytes());
            assert_eq!((origin.speaker, origin.front()), (speaker, front.to_owned()), "{line}");
        }
    }
}
