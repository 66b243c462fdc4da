//! Of the kernel's log the messages that explain knows, in the driver's words: the kernel logs command lines of users and
//! whatever else a name can hold.

use kernel_log::knowledge::Knowledge;
use kernel_log::origin::Origin;

use super::keep::{is_listed, is_of_gpu};

/// What stands for a value that is no number, no address and no name of a part of a GPU; without a blank, so that explain
/// knows the line again.
const MARK: &str = "[removed]";

const MODULE: &str = "amdgpu: ";

/// A line as the report has it; `None` for one in which nothing is known.
pub(super) fn reported(knowledge: &Knowledge, line: &str) -> Option<String> {
    let found = knowledge.find_any(line.as_bytes())?;
    let value = |hole: &str| {
        let value = found.values.iter().find(|(name, _)| *name == hole).map(|(_, value)| value.as_str());
        let is_listed = |value: &str| {
            found.pattern.values.get(hole).is_some_and(|listed| listed.iter().any(|name| name == value))
        };
        value.filter(|value| is_plain(value) || is_listed(value)).unwrap_or(MARK).to_owned()
    };
    let origin = Origin::of_line(line.as_bytes());
    let sender = found.device.filter(|device| origin.device.is_some_and(|port| port != *device));
    let sender = sender.map_or_else(String::new, |device| format!(" received from {device}"));
    let (front, text) = (origin.front(), found.pattern.text.filled(value));
    // Of a pattern that has the module's prefix itself.
    let text = if front.ends_with(MODULE) { text.trim_start_matches(MODULE) } else { &text };
    Some(format!("{front}{text}{sender}"))
}

/// A number, an address, PCI's vendor or device (`67df`), or what amdgpu calls a part of a GPU and its queues
/// (amdgpu_ring.c, amdgpu_ras.c): `gfx_0.0.0`, `mes_kiq_3.1.0`, `gfx_v11_0`, `[gfxhub0]`.
fn is_plain(value: &str) -> bool {
    let is_id = value.len() == 4 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bare = value.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let is_part = |word: &str| {
        let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
        word.len() - name.len() <= 3 && (name.is_empty() || name == "v" || is_listed(name))
    };
    let is_name = bare.starts_with(|c: char| c.is_ascii_alphabetic());
    is_id || is_of_gpu(value) || is_name && bare.split(['_', '.']).all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(line: &str) -> Option<String> {
        reported(Knowledge::built_in().unwrap(), line)
    }

    const TIME: &str = "2026-11-22T18:40:01+00:00 kernel: ";

    #[test]
    fn known_messages_keep_their_words_numbers_and_names_of_a_gpus_parts() {
        for (line, expected) in [
            (
                "amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=11, emitted seq=13",
                "amdgpu 0000:03:00.0: ring gfx_0.0.0 timeout, signaled seq=11, emitted seq=13",
            ),
            (
                "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process Sec1hunter pid 7 thread Sec1hunter pid 8",
                "amdgpu: Process information: process [removed] pid 7 thread [removed] pid 8",
            ),
            (
                "amdgpu 0000:0c:00.0: socket: 0, die: 0, 2 uncorrectable hardware errors detected in total in umc block, Sec1hunter",
                "amdgpu 0000:0c:00.0: 2 uncorrectable hardware errors detected in total in umc block",
            ),
            (
                "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process gpu=Sec1hunter pid 7 thread 192.168.70.12 pid 8",
                "amdgpu: Process information: process [removed] pid 7 thread [removed] pid 8",
            ),
            (
                "amdgpu: unknown parameter 'tag=correct horse battery' ignored",
                "amdgpu: unknown parameter '[removed]' ignored",
            ),
            (
                "amdgpu: `Sec1hunter' invalid for parameter `dc'",
                "amdgpu: `[removed]' invalid for parameter `dc'",
            ),
            (
                "pcieport 0000:00:01.1: AER: Uncorrectable (Fatal) error message received from 0000:03:00.0",
                "pcieport 0000:00:01.1: Uncorrectable (Fatal) error message received from 0000:03:00.0",
            ),
            (
                "{2}[Hardware Error]:   device_id: 0000:43:00.0",
                "{2}[Hardware Error]: device_id: 0000:43:00.0",
            ),
            (
                "amdgpu 0000:04:00.0: [drm:amdgpu_ib_ring_tests [amdgpu]] *ERROR* IB test failed on mes_kiq_3.1.0 (-110).",
                "amdgpu 0000:04:00.0: IB test failed on mes_kiq_3.1.0 (-110).",
            ),
        ] {
            assert_eq!(kept(&format!("{TIME}{line}")), Some(format!("{TIME}{expected}")), "{line}");
        }
        for forged in ["2026-11-22T18:40:01Sec1hunter kernel:", "[Sec1hunter 18:40:01]", "[1.2.3]"] {
            let kept = kept(&format!("{forged} amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed"));
            assert!(kept.iter().all(|line| line.starts_with("amdgpu ")), "{kept:?}");
        }
        let line = "[   12.345678] amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed";
        assert_eq!(kept(line).as_deref(), Some("[   12.345678] amdgpu 0000:03:00.0: GPU reset(2) failed"));
    }

    /// A report is input of explain as the log is.
    #[test]
    fn what_is_kept_of_a_message_is_known_as_that_message() {
        let knowledge = Knowledge::built_in().unwrap();
        for message in knowledge.messages() {
            for pattern in &message.patterns {
                let whole = knowledge.find_any(pattern.sample.as_bytes()).unwrap();
                let line = kept(&pattern.sample).unwrap();
                let found = knowledge.find_any(line.as_bytes());
                let found = found.map(|found| (&found.message.id, found.device));
                assert_eq!(found, Some((&message.id, whole.device)), "{line}");
            }
        }
    }

    /// What the kernel logs of users: audit's records (kernel/audit.c), packets, the command line of the boot.
    #[test]
    fn lines_that_are_no_known_message_go_whole() {
        for line in [
            "audit: type=1309 audit(1764.5:12): argc=4 a0=\"mysql\" a1=\"-u\" a2=\"user:Sec1hunter\" a3=\"-pSec1hunter\" amdgpu",
            "audit: type=1123 audit(1764.5:12): pid=7 uid=1000 cwd=\"/home/ann\" cmd=\"curl -u user:Sec1hunter https://amdgpu\"",
            "audit: type=1400 audit(1764.5:12): apparmor=\"DENIED\" name=\"/sys/module/amdgpu PASS=Sec1hunter\"",
            "audit: type=1300 audit(1764.5:12): exe=\"amdgpu https://host/?sig=Sec1hunter\"",
            "amdgpu https://hooks.slack.com/services/T0/B0/Sec1hunter",
            "Command line: BOOT_IMAGE=/vmlinuz amdgpu.dc=0 rd.luks.pass=Sec1hunter",
            "Kernel command line: amdgpu.dc=0 rd.luks.pass=Sec1hunter",
            "amdgpu IN=eth0 OUT= MAC=52:54:00:12:34:56:52:54:00:12:34:57:08:00 SRC=10.0.0.1",
            "amdgpu[7]: segfault at 0 ip 0 sp 0 error 4 in Sec1hunter[401000+1000]",
            "tmpfs: Unknown parameter 'amdgpu 0000:03:00.0: GPU reset(2) failed Sec1hunter'",
            "usb 1-1: SerialNumber: amdgpu Sec1hunter",
            "amdgpu 0000:03:00.0: amdgpu: SECRET Sec1hunter",
        ] {
            assert_eq!(kept(&format!("{TIME}{line}")), None, "{line}");
            assert_eq!(kept(&format!("[   12.345678] {line}")), None, "{line}");
        }
    }
}
