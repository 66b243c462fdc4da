//! What to call a GPU.

use std::cmp::Ordering;

use crate::Gpu;

/// The PCI id database's lines for vendors of GPUs, `VVVVDDDD NAME`, sorted; `cargo xtask pci-ids` makes it. Lines that
/// begin with `#` stand before them.
const DEVICES: &str = include_str!("pci.ids");

/// The driver's own name for the product, else the PCI id database's for the chip; `None` when neither
/// knows it.
#[must_use]
pub fn of(gpu: &Gpu) -> Option<String> {
    let product = gpu.product_name.as_ref().ok();
    product.cloned().or_else(|| of_chip(gpu).map(str::to_owned))
}

/// The PCI id database's name for the chip.
#[must_use]
pub fn of_chip(gpu: &Gpu) -> Option<&'static str> {
    let key = format!("{:04x}{:04x}", gpu.vendor_id?, gpu.device_id?);
    find(DEVICES, &key)
}

/// The rest of the line that begins with `key` and a space, in lines sorted by their bytes.
fn find<'a>(lines: &'a str, key: &str) -> Option<&'a str> {
    let mut rest = lines;
    while !rest.is_empty() {
        // The line around the middle: a line is whole between two ends, and ends are ASCII.
        let middle = rest.len() / 2;
        let start =
            rest.as_bytes().iter().take(middle).rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = rest.get(start..)?.lines().next()?;
        let (id, name) = line.split_once(' ').unwrap_or((line, ""));
        rest = match key.cmp(id) {
            Ordering::Equal => return Some(name),
            Ordering::Less => rest.get(..start)?,
            Ordering::Greater => rest.get(start + line.len()..)?.strip_prefix('\n').unwrap_or_default(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_database_is_found_by_its_ids() {
        let devices: Vec<_> = DEVICES.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(devices.len() > 5_000, "{}", devices.len());
        for line in devices {
            let (id, name) = line.split_once(' ').unwrap();
            assert_eq!(find(DEVICES, id), Some(name), "{line}");
        }
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for key in ["00000000", "1002ffff", "ffffffff", "1002"] {
            assert_eq!(find("#\n# about\n10021586 Strix Halo\n100215bf Phoenix1\n", key), None, "{key}");
        }
        assert_eq!(find("", "100215bf"), None);
    }
}
