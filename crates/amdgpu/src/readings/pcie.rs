//! The PCIe link (pci-sysfs.c), and the traffic on it (amdgpu_pm.c).

use inventory::readings::{Pcie, PcieTraffic};
use inventory::{PciAddress, Reading};
use root::Root;

use super::source::Source;
use crate::{attribute, pci};

pub(super) fn read(source: &mut Source<'_>) -> Pcie {
    Pcie {
        speed: speed(source, "current_link_speed"),
        max_speed: speed(source, "max_link_speed"),
        width: width(source, "current_link_width"),
        max_width: width(source, "max_link_width"),
        // nv_get_pcie_replay_count (nv.c) answers 0 on every Navi without asking the hardware.
        replays: source.number("pcie_replay_count").filter(|replays| *replays != 0),
        ..Pcie::default()
    }
}

fn speed(source: &mut Source<'_>, name: &str) -> Option<f64> {
    source.parsed(name, "speed of a link", transfers_per_second).flatten()
}

/// `16.0 GT/s PCIe`. The kernel says `Unknown` or `Unknown speed` of a link that it does not know.
pub(crate) fn transfers_per_second(text: &str) -> Option<Option<f64>> {
    if text.starts_with("Unknown") {
        return Some(None);
    }
    let number: f64 = text.split_once(" GT/s")?.0.parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(Some(number * 1e9))
}

fn width(source: &mut Source<'_>, name: &str) -> Option<u32> {
    source.number(name).filter(|width| is_width(*width))
}

/// 0 and 255 (`PCIE_LNK_WIDTH_UNKNOWN`) are no widths: a virtual function has no link of its own.
pub(crate) fn is_width(lanes: u32) -> bool {
    lanes != 0 && lanes != 255
}

/// Reads `pcie_bw`. **The driver counts packets for a second meanwhile**: call it in a thread of its own. A suspended card
/// is not asked.
///
/// # Errors
/// The file is not there (APUs have none), cannot be read, or does not hold three numbers; or the card is suspended.
pub fn pcie_traffic(root: &Root, address: PciAddress) -> Reading<PcieTraffic> {
    if let Some(asleep) = pci::asleep(root, address) {
        return Err(asleep);
    }
    let path = pci::folder(address).join("pcie_bw");
    let text = attribute::text(root, &path)?;
    let traffic = || {
        let mut numbers = text.split_whitespace().map(|number| number.parse::<u64>().ok());
        let (received, sent, payload) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let bytes = |packets: u64| packets.checked_mul(payload).map(|bytes| bytes as f64);
        let traffic =
            PcieTraffic { received_bytes_per_second: bytes(received)?, sent_bytes_per_second: bytes(sent)? };
        numbers.next().is_none().then_some(traffic)
    };
    traffic().ok_or_else(|| attribute::not_a("count of packets", &text, &root.shown(&path)))
}
